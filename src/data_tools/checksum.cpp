#include "src/data_tools/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>
#include <vector>

#include "datasets/data_file_error.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

std::string digest_file(const std::filesystem::path& file, Digest digest,
                        const std::function<void(uint64_t)>& progress) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw data_file_error("open", file);
  std::vector<char> buffer(4 << 20);
  uint64_t done = 0;
  while (stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto size = static_cast<size_t>(stream.gcount());
    digest.add(std::string_view(buffer.data(), size));
    progress(done += size);
  }
  if (stream.bad()) throw data_file_error("read", file);
  return digest.hex();
}

}  // namespace

std::string checksum_text(const Checksum& checksum) {
  if (!checksum.known()) return "none";
  return (checksum.kind == Checksum::Kind::kMd5 ? "MD5 " : "SHA-256 ") + checksum.hex;
}

Checksum parse_md5(const std::string& text) {
  std::string hex = text;
  std::transform(hex.begin(), hex.end(), hex.begin(), [](unsigned char c) { return std::tolower(c); });
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw ConfigError(fmt::format("--md5: expected 32 hexadecimal digits, got '{}'", text));
  }
  return {Checksum::Kind::kMd5, hex};
}

Checksum checksum_of_file(const std::filesystem::path& file, const Checksum& like,
                          const std::function<void(uint64_t)>& progress) {
  switch (like.kind) {
    case Checksum::Kind::kMd5:
      return {like.kind, digest_file(file, Md5(), progress)};
    case Checksum::Kind::kSha256:
      return {like.kind, digest_file(file, Sha256(), progress)};
    default:
      return {};
  }
}

}  // namespace settrain
