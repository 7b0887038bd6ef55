// TensorBoard's event files, written: scalars.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/files.h"

namespace settrain {

/// CRC-32C (Castagnoli) of `bytes`, as in RFC 3720, appendix B.4: the checksum of event files.
uint32_t crc32c(std::string_view bytes);

/// Writes an event file: records (length, its checksum, data, their checksum) of protocol-buffer messages `Event`.
/// TensorBoard reads a file whose name holds "tfevents". Throws RunError, naming the file, where it cannot be written.
class TensorboardWriter {
 public:
  /// Goes on at the end of an existing file.
  explicit TensorboardWriter(const std::filesystem::path& file);

  /// One point of each curve, at `step`, kept as float32. On its way to the disk when this returns, and complete.
  void add_scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);

  /// Bytes of the file, which are on the disk when this returns: what a checkpoint keeps.
  uint64_t offset();

  /// Removes all points.
  void clear();

  /// Removes what was written after offset() returned `offset`.
  void truncate_to(uint64_t offset) { file_.truncate_to(offset); }

 private:
  AppendFile file_;
};

}  // namespace settrain
