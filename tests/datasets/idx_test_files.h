// IDX files for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// The bytes of an IDX file of unsigned bytes: a header for `sizes`, then `values`, which need not agree with it.
inline std::string idx_bytes(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  }
  return bytes + values;
}

/// `bytes` compressed as a .gz file.
inline std::string gzip(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string file = (folder / "file.gz").string();
  gzFile stream = gzopen(file.c_str(), "wb");
  gzwrite(stream, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(stream);
  std::ifstream compressed(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(compressed), std::istreambuf_iterator<char>()};
}

}  // namespace settrain::test
