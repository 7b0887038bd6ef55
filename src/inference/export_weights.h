// A trained model's weights in a file for others: `settrain export`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/checkpoint/checkpoint.h"

namespace settrain {

/// Adds LoRA's products to the weights that they lie beside, of those whose names begin with `prefix`, and removes its
/// parts. Throws RunError, naming `file`, where parts are missing or do not fit.
void merge_lora(TensorMap& weights, const std::string& prefix, const std::filesystem::path& file);

/// A summary of an exported file.
struct ExportedWeights {
  int64_t num_tensors = 0, num_elements = 0;
  int64_t epoch = 0;      // completed when the checkpoint was made
  bool averaged = false;  // the weights are the moving average, which was evaluated
};

/// Writes the weights that `checkpoint` was evaluated with to `file`: a safetensors file with torchvision's names and
/// without the optimizer's state, which Python's load_state_dict() takes as it is. Its metadata: "format" ("pt"),
/// "config" (the run's resolved YAML), "epoch", "checkpoint.sha256" (the checkpoint's own digest), and `more`: the
/// model's card and rules, with which open_trained_model() can open the file. Throws RunError where the file cannot be
/// written.
ExportedWeights export_weights(const Checkpoint& checkpoint, const std::filesystem::path& file,
                               const TextMap& more = {});

}  // namespace settrain
