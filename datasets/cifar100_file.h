// The binary version of CIFAR-100: records of a coarse label, a fine label and 3,072 bytes of pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

struct Cifar100File {
  std::vector<uint8_t> coarse;  // [records] in [0, 20)
  std::vector<uint8_t> fine;    // [records] in [0, 100)
  std::vector<uint8_t> pixels;  // [records, 32, 32, 3]: the file's red, green and blue planes interleaved
  std::string sha256;           // of the file
};

/// Throws DataError, naming the file, where it cannot be read, does not have the size of `records` records, or has a
/// label out of range.
Cifar100File read_cifar100_file(const std::filesystem::path& file, int64_t records);

}  // namespace settrain
