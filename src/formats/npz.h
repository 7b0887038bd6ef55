// Arrays of NumPy: .npz archives, read as numpy.savez and numpy.savez_compressed write them, and written as numpy.savez
// does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/core/files.h"
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

/// The same for arrays of texts ('<U5') with one dimension, in UTF-8.
std::map<std::string, std::vector<std::string>> read_npz_texts(const std::filesystem::path& file,
                                                               const std::set<std::string>& wanted);

/// Writes a .npz archive through a temporary file, so that it is there whole or not at all. The same arrays give the
/// same bytes. Throws RunError where it cannot be written.
class NpzWriter {
 public:
  explicit NpzWriter(const std::filesystem::path& file) : output_(file) {}

  /// Adds a row-major array of a dtype that NumPy has. Throws std::invalid_argument where `bytes`, little-endian, are
  /// not those of the shape.
  void add(const std::string& name, Dtype dtype, const std::vector<int64_t>& shape, std::span<const std::byte> bytes);

  /// Adds an array of texts, dtype '<U', which np.load takes without allow_pickle. What is not UTF-8 becomes U+FFFD.
  void add_texts(const std::string& name, const std::vector<std::string>& texts);

  /// Must be called once, after the last array.
  void commit();

 private:
  void add_array(const std::string& name, const std::string& descr, const std::vector<int64_t>& shape,
                 std::span<const std::byte> bytes);

  AtomicFile output_;
  std::string directory_;  // entries of the members so far
  uint64_t size_ = 0, members_ = 0;
};

}  // namespace settrain
