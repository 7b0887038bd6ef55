#include "src/inference/export_weights.h"

#include <ATen/TensorOperators.h>

#include <string>
#include <string_view>

#include "src/train/checkpoint.h"

namespace settrain {
namespace {

// A scaled head as the linear one that gives the same scores, which other programs know.
void fold_factors(TensorMap& weights) {
  constexpr std::string_view kFactor = ".factor";
  for (auto it = weights.begin(); it != weights.end();) {
    if (!it->first.ends_with(kFactor)) {
      ++it;
      continue;
    }
    const std::string head = it->first.substr(0, it->first.size() - kFactor.size());
    at::Tensor& weight = weights.at(head + ".weight");
    weight = weight * it->second.unsqueeze(1);
    if (const auto bias = weights.find(head + ".bias"); bias != weights.end()) bias->second = bias->second * it->second;
    it = weights.erase(it);
  }
}

}  // namespace

ExportedWeights export_weights(const Checkpoint& from, const std::filesystem::path& file, const TextMap& more) {
  const std::string prefix = from.weights_prefix();
  ExportedWeights exported{.epoch = from.integer("state.epoch"), .averaged = prefix == Checkpoint::kAveraged};
  TensorMap weights;
  for (const auto& [name, tensor] : from.tensors) {
    if (!name.starts_with(prefix)) continue;
    weights.emplace(name.substr(prefix.size()), tensor);
  }
  fold_factors(weights);
  exported.num_tensors = static_cast<int64_t>(weights.size());
  for (const auto& [name, tensor] : weights) exported.num_elements += tensor.numel();
  TextMap metadata{{"format", "pt"},
                   {"config", from.text("config")},
                   {"epoch", std::to_string(exported.epoch)},
                   {"checkpoint.sha256", from.text("sha256")}};
  metadata.insert(more.begin(), more.end());
  write_tensor_file(file, weights, metadata);
  return exported;
}

}  // namespace settrain
