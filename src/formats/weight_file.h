// A file of weights: safetensors, or what Python's torch.save wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/input_file.h"

namespace settrain {

/// Nothing in the file is trusted, and nothing that it asks for is run: what the bytes say is checked before memory is
/// taken for it.
class WeightFile {
 public:
  /// Reads what the file holds, but no tensor. Which format it is, its first bytes say. Throws RunError that names the
  /// file and says what is wrong, also where its tensors, written out one by one, would take more than eight times the
  /// bytes of the file (views that repeat, or share, what it holds).
  explicit WeightFile(const std::filesystem::path& path);

  const Contents& contents() const { return contents_; }

  /// Reads one of contents().tensors, row-major without gaps, to `target` of entry.num_bytes() bytes. Throws RunError
  /// where the file is damaged (bytes against their checksum, truth values other than 0 and 1) or cannot be read.
  void read(const TensorEntry& entry, void* target);

 private:
  InputFile file_;
  Contents contents_;
  std::set<Storage> checked_;                           // against their checksums
  std::map<Storage, std::vector<uint8_t>> storages_{};  // of tensors with gaps
};

/// Reads a tensor without gaps that lies in `file` as above, without the comparison with a checksum.
void read_contiguous(const InputFile& file, const TensorEntry& entry, void* target);

}  // namespace settrain
