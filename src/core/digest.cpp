#include "src/core/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "src/core/error.h"

namespace settrain {

void Digest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Digest::Digest(const evp_md_st* kind, const char* name) : context_(EVP_MD_CTX_new()), name_(name) {
  // MD5 is refused where the system allows approved algorithms only.
  if (!context_ || EVP_DigestInit_ex(context_.get(), kind, nullptr) != 1) {
    throw std::runtime_error(fmt::format("OpenSSL cannot start {}", name_));
  }
}

Digest& Digest::add(std::span<const uint8_t> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) {
    throw std::runtime_error(fmt::format("OpenSSL cannot continue {}", name_));
  }
  return *this;
}

Digest& Digest::add(std::string_view text) {
  return add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

std::string Digest::hex() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1) {
    throw std::runtime_error(fmt::format("OpenSSL cannot finish {}", name_));
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Sha256::Sha256() : Digest(EVP_sha256(), "SHA-256") {}
Md5::Md5() : Digest(EVP_md5(), "MD5") {}

std::string sha256(std::string_view text) {
  return Sha256().add(text).hex();
}

std::string sha256_of_file(const std::filesystem::path& file, uint64_t most) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw DataError(fmt::format("cannot open '{}'", file.string()));
  Sha256 sha;
  std::vector<char> buffer(1 << 20);
  while (stream && most > 0) {
    stream.read(buffer.data(), static_cast<std::streamsize>(std::min<uint64_t>(buffer.size(), most)));
    sha.add(std::string_view(buffer.data(), static_cast<size_t>(stream.gcount())));
    most -= static_cast<uint64_t>(stream.gcount());
  }
  if (stream.bad()) throw DataError(fmt::format("cannot read '{}'", file.string()));
  return sha.hex();
}

}  // namespace settrain
