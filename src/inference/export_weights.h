// A trained model as one file, whose weights other programs read too.
#pragma once

#include <cstdint>
#include <filesystem>

#include "src/train/checkpoint.h"

namespace settrain {

/// What was written.
struct ExportedWeights {
  int64_t num_tensors = 0, num_elements = 0;
  int64_t epoch = 0;      // completed when the checkpoint was made
  bool averaged = false;  // the moving average of the weights, which is what was evaluated
};

/// Writes the weights that `checkpoint` was evaluated with to `file`, a safetensors file with torchvision's names and
/// nothing of the optimizer; Python's load_state_dict() takes it as it is. Its metadata: "format" ("pt"), "config" (the
/// run's resolved YAML), "epoch", "checkpoint.sha256" (the checkpoint's own digest), and `more`: the model's card and
/// rules, with which it is a model that open_trained_model() takes. Throws RunError where the file cannot be written.
ExportedWeights export_weights(const Checkpoint& checkpoint, const std::filesystem::path& file,
                               const TextMap& more = {});

}  // namespace settrain
