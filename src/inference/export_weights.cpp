#include "src/inference/export_weights.h"

#include <string>

#include "src/train/checkpoint.h"

namespace settrain {

ExportedWeights export_weights(const std::filesystem::path& checkpoint, const std::filesystem::path& file) {
  const Checkpoint from = load_checkpoint(checkpoint);
  const std::string prefix = from.weights_prefix();
  ExportedWeights exported{.epoch = from.integer("state.epoch"), .averaged = prefix == Checkpoint::kAveraged};
  TensorMap weights;
  for (const auto& [name, tensor] : from.tensors) {
    if (!name.starts_with(prefix)) continue;
    weights.emplace(name.substr(prefix.size()), tensor);
    exported.num_elements += tensor.numel();
  }
  exported.num_tensors = static_cast<int64_t>(weights.size());
  write_tensor_file(file, weights,
                    {{"format", "pt"},
                     {"config", from.text("config")},
                     {"epoch", std::to_string(exported.epoch)},
                     {"checkpoint.sha256", from.text("sha256")}});
  return exported;
}

}  // namespace settrain
