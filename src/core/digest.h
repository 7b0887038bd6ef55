// SHA-256: tells whether two runs saw the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace settrain {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();

  Sha256& add(std::span<const uint8_t> bytes);
  Sha256& add(std::string_view text);
  /// The digest as 64 lower-case hexadecimal digits. Call it once, at the end.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// Of a text.
std::string sha256(std::string_view text);

/// Of a file's content, or of its first `most` bytes. Throws DataError where it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file, uint64_t most = UINT64_MAX);

}  // namespace settrain
