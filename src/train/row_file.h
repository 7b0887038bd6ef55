// A file of features that grows by whole batches and outlives the process that fills it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "datasets/feature_table.h"
#include "src/core/files.h"

namespace settrain {

/// The config key that error messages name.
inline constexpr const char* kCacheFeatures = "data.cache_features";

/// A file of rows, which FeatureTable maps: a header, then row after row. While it is being filled it is called
/// NAME.partial and locked, so that one process fills it. A part that was written before the machine last started may
/// have lost what had not reached the disk, and is not gone on with.
class RowFile {
 public:
  static constexpr int64_t kHeaderBytes = 256;  // a multiple of what rows are aligned to

  /// `path`: its name is the digest of what the rows depend on. `rows`: of the whole file, of `width` numbers each.
  RowFile(std::filesystem::path path, int64_t rows, int64_t width, FeatureTable::Stored stored);

  const std::filesystem::path& path() const { return path_; }

  /// Whether all rows are there.
  bool is_whole() const;

  /// The rows that are there: all of a whole file; or those of the part, cut to whole batches of `batch` rows, to which
  /// append() adds; or nothing where another process is filling it. A whole file that is not what it should be is
  /// removed, with a warning. Throws RunError where the file cannot be made.
  std::optional<int64_t> open(int64_t batch);

  /// `values`: [rows, width] float32. Throws RunError where they cannot be written; none of them is then in the file.
  void append(const at::Tensor& values);

  /// Gives the file, whose rows have all been appended, its name, and its lock up. Throws RunError.
  void finish();

 private:
  int64_t size_of(int64_t rows) const { return kHeaderBytes + rows * row_bytes_; }
  int64_t begin(int64_t batch);
  bool is_same_file() const;
  void cut_to(int64_t size);
  [[noreturn]] void fail(const char* action, int code) const;

  std::filesystem::path path_, partial_;
  int64_t rows_, row_bytes_, written_ = 0;
  at::ScalarType type_;
  std::string header_, partial_header_;
  Descriptor file_;
};

}  // namespace settrain
