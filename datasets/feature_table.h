// Rows of numbers that stand for images: the features that a trained network made of each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace settrain {

/// [size, width] float32, in memory or in a file that is mapped into memory, as it is or as bfloat16. Read by many
/// threads.
class FeatureTable {
 public:
  enum class Stored { kFloat32, kBfloat16 };

  static int64_t bytes_of(Stored stored) { return stored == Stored::kFloat32 ? 4 : 2; }

  /// `values`: row after row. Throws std::invalid_argument where `width` does not divide them.
  FeatureTable(std::vector<float> values, int64_t width);

  /// Maps `size` rows that begin at byte `offset` of the file, which must not become shorter while the table is in use.
  /// Throws RunError where the file cannot be read, or ends before them.
  FeatureTable(const std::filesystem::path& file, uint64_t offset, int64_t size, int64_t width, Stored stored);

  int64_t size() const { return size_; }
  int64_t width() const { return width_; }

  /// Copies the row into out[0] to out[width - 1].
  void read(int64_t row, float* out) const;

 private:
  std::shared_ptr<const void> owner_;  // of the memory or of the map
  const uint8_t* bytes_;
  int64_t size_, width_;
  Stored stored_;
};

}  // namespace settrain
