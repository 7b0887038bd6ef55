// Arrays of NumPy: .npz archives, as numpy.savez and numpy.savez_compressed write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/formats/contents.h"

namespace settrain {

struct NumpyArray {
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> shape, stride;  // stride in elements; row-major, or column-major as NumPy can store them
  std::vector<uint8_t> bytes;          // little-endian
};

/// Whether the file begins as a zip archive.
bool is_zip(const std::filesystem::path& file);

/// Whether the file begins as a .npy file, which holds one array.
bool is_npy(const std::filesystem::path& file);

/// Reads the `wanted` arrays that the archive has, by their names without ".npy". Nothing in the file is trusted:
/// sizes are checked before memory is taken. Throws RunError that names the file and the array where it is damaged, of
/// another byte order, or of a dtype that Dtype does not have, such as texts.
std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& file, const std::set<std::string>& wanted);

}  // namespace settrain
