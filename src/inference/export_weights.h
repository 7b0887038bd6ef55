// Weights for other programs.
#pragma once

#include <cstdint>
#include <filesystem>

namespace settrain {

/// What was written.
struct ExportedWeights {
  int64_t num_tensors = 0, num_elements = 0;
  int64_t epoch = 0;      // completed when the checkpoint was made
  bool averaged = false;  // the moving average of the weights, which is what was evaluated
};

/// Writes the weights that `checkpoint` was evaluated with to `file`, a safetensors file with torchvision's names and
/// nothing of the optimizer; Python's load_state_dict() takes it as it is. Its metadata: "format" ("pt"), "config" (the
/// run's resolved YAML), "epoch" and "checkpoint.sha256" (the checkpoint's own digest). Throws RunError where the
/// checkpoint cannot be read or the file not be written.
ExportedWeights export_weights(const std::filesystem::path& checkpoint, const std::filesystem::path& file);

}  // namespace settrain
