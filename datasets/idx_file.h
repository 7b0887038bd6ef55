// The IDX format of the MNIST family (http://yann.lecun.com/exdb/mnist), plain or compressed by gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// An array of bytes, the last dimension contiguous.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> values;
  std::string sha256;  // of the uncompressed file, header included
};

/// Reads a file of unsigned bytes with `rank` dimensions. Throws DataError, naming the file, where it cannot be opened,
/// is no IDX file of that type and rank, is shorter or longer than its header says, is corrupt (gzip's own checksum
/// included), or declares more than `max_values` values. Memory follows the bytes that are really there, whatever the
/// header declares.
IdxArray read_idx(const std::filesystem::path& file, int rank, int64_t max_values = int64_t{1} << 30);

}  // namespace settrain
