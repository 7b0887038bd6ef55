// A file of weights, safetensors or of Python's torch.save: its tensors, and which of them are a model's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
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

/// The value of "kind" in the metadata of settrain's own checkpoints.
inline constexpr const char* kCheckpointKind = "settrain checkpoint";

/// A model's tensors among those of a file.
struct StateDict {
  std::map<std::string, TensorEntry> tensors{};  // by torchvision's names
  std::string from{};                            // where they lay and what became of their names; empty: as they are
};

/// The tensors below `key` ("state_dict_ema", "teacher.backbone"), of a checkpoint of settrain those with it before
/// their names (model, ema). An empty key: those below state_dict, model_state_dict or model, or below several, one in
/// the other; else those of the only dict of tensors, or those that are in no container, whichever are more; of a
/// checkpoint of settrain, the weights that were evaluated. The prefixes "module." (DataParallel), "_orig_mod."
/// (torch.compile), "model.", "net." and "backbone." are removed where all names have them, AveragedModel's n_averaged
/// is left out, and DenseNet's layers and transformers' MLPs take their newer names (norm1 for norm.1, mlp.0 for
/// mlp.linear_1).
///
/// Throws RunError, `place` in front, where there are no such tensors, where it is open which ones are meant, and where
/// two of them would have one name.
StateDict find_state_dict(const Contents& contents, const std::string& place, const std::string& key = "");

}  // namespace settrain
