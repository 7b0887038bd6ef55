// Which of a file's tensors are a model's, and by which names.
#pragma once

#include <map>
#include <string>

#include "src/formats/contents.h"

namespace settrain {

/// What settrain's own checkpoints say in their metadata under "kind".
inline constexpr const char* kCheckpointKind = "settrain checkpoint";

/// A model's tensors among those of a file.
struct StateDict {
  std::map<std::string, TensorEntry> tensors{};  // by torchvision's names
  std::string from{};                            // where they lay and what became of their names; empty: as they are
};

/// The tensors below the key state_dict, model_state_dict or model; else those of the only dict of tensors, or those
/// that are in no container, whichever are more; of a checkpoint of settrain, the weights that were evaluated. The
/// prefixes "module." (DataParallel), "_orig_mod." (torch.compile), "model.", "net." and "backbone." are removed where
/// all names have them, AveragedModel's n_averaged is left out, and DenseNet's layers and transformers' perceptrons
/// take their newer names (norm1 for norm.1, mlp.0 for mlp.linear_1).
///
/// Throws RunError, `place` in front, where there are no such tensors, where it is open which ones are meant, and where
/// two of them would have one name.
StateDict find_state_dict(const Contents& contents, const std::string& place);

}  // namespace settrain
