// Digests: SHA-256 tells whether two runs saw the same bytes, MD5 whether a file is the one that its publisher has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_st;      // OpenSSL's EVP_MD
struct evp_md_ctx_st;  // and EVP_MD_CTX

namespace settrain {

/// The digest of bytes that come in pieces.
class Digest {
 public:
  Digest& add(std::span<const uint8_t> bytes);
  Digest& add(std::string_view text);
  /// The digest as lower-case hexadecimal digits. Call it once, at the end.
  std::string hex();

 protected:
  Digest(const evp_md_st* kind, const char* name);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  const char* name_;
};

/// SHA-256 (FIPS 180-4): 64 digits.
class Sha256 : public Digest {
 public:
  Sha256();
};

/// MD5 (RFC 1321): 32 digits. Against accidents only, since files with a given MD5 can be made; it is what many data
/// sets are published with.
class Md5 : public Digest {
 public:
  Md5();
};

/// SHA-256 of the text, in hex.
std::string sha256(std::string_view text);

/// SHA-256 of the file, or of its first `most` bytes, in hex. Throws DataError where it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file, uint64_t most = UINT64_MAX);

}  // namespace settrain
