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

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot start SHA-256");
  }
}

Sha256& Sha256::add(std::span<const uint8_t> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) {
    throw std::runtime_error("OpenSSL cannot continue SHA-256");
  }
  return *this;
}

Sha256& Sha256::add(std::string_view text) {
  return add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

std::string Sha256::hex() {
  std::array<uint8_t, 32> digest;
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot finish SHA-256");
  }
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

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
