#include "src/inference/export_weights.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "src/core/error.h"

namespace settrain {
namespace {

// Replaces a scaled head by the linear head that gives the same scores, which other programs know.
void fold_factors(TensorMap& weights) {
  constexpr std::string_view kFactor = ".factor";
  for (auto it = weights.begin(); it != weights.end();) {
    if (!it->first.ends_with(kFactor)) {
      ++it;
      continue;
    }
    const std::string head = it->first.substr(0, it->first.size() - kFactor.size());
    at::Tensor& weight = weights.at(head + ".weight");
    std::vector<int64_t> for_each_class(static_cast<size_t>(weight.dim()), 1);
    for_each_class.front() = -1;
    weight = weight * it->second.view(for_each_class);
    if (const auto bias = weights.find(head + ".bias"); bias != weights.end()) bias->second = bias->second * it->second;
    it = weights.erase(it);
  }
}

}  // namespace

void merge_lora(TensorMap& weights, const std::string& prefix, const std::filesystem::path& file) {
  constexpr std::string_view kInside = ".lora.";
  constexpr std::array<std::string_view, 3> kParts{".up", ".down", ".scale"};
  const std::string place = fmt::format("'{}'", file.string());
  std::set<std::string> adapters;
  for (const auto& [name, tensor] : weights) {
    if (!name.starts_with(prefix) || name.find(kInside) == std::string::npos) continue;
    const std::string adapter = name.substr(0, name.rfind('.'));
    const bool is_part = std::ranges::count(kParts, std::string_view(name).substr(adapter.size())) > 0;
    if (!is_part || adapter.find(kInside) == std::string::npos) {
      throw RunError(fmt::format("{}: {} is no part of LoRA, which has up, down and scale", place, name));
    }
    adapters.insert(adapter);
  }
  const auto part = [&](const std::string& name) -> at::Tensor& {
    const auto found = weights.find(name);
    if (found == weights.end()) throw RunError(fmt::format("{}: it has LoRA's weights, and no {}", place, name));
    return found->second;
  };
  for (const std::string& adapter : adapters) {
    const std::string layer = std::string(adapter).replace(adapter.rfind(kInside), kInside.size(), ".");
    // timm's layers have a `weight`, torchvision's in_proj_weight is a parameter of the attention itself.
    const std::string weight = layer + (weights.contains(layer + ".weight") ? ".weight" : "_weight");
    const at::Tensor up = part(adapter + ".up"), down = part(adapter + ".down"), scale = part(adapter + ".scale");
    at::Tensor& merged = part(weight);
    const bool fit = up.dim() == 2 && down.dim() == 2 && up.size(1) == down.size(0) && scale.dim() == 0 &&
                     merged.sizes() == at::IntArrayRef{up.size(0), down.size(1)};
    if (!fit) {
      throw RunError(fmt::format("{}: {}'s up [{}], down [{}] and scale [{}] do not fit {} [{}]", place, adapter,
                                 fmt::join(up.sizes(), ", "), fmt::join(down.sizes(), ", "),
                                 fmt::join(scale.sizes(), ", "), weight, fmt::join(merged.sizes(), ", ")));
    }
    const at::Tensor product = up.to(at::kDouble).matmul(down.to(at::kDouble));
    merged = (merged.to(at::kDouble) + product * scale.to(at::kDouble)).to(merged.scalar_type());
    for (const std::string_view name : kParts) weights.erase(adapter + std::string(name));
  }
}

ExportedWeights export_weights(const Checkpoint& from, const std::filesystem::path& file, const TextMap& more) {
  const std::string prefix = from.weights_prefix();
  ExportedWeights exported{.epoch = from.integer("state.epoch"), .averaged = prefix == Checkpoint::kAveraged};
  TensorMap weights;
  for (const auto& [name, tensor] : from.tensors) {
    if (!name.starts_with(prefix)) continue;
    weights.emplace(name.substr(prefix.size()), tensor);
  }
  fold_factors(weights);
  merge_lora(weights, "", from.file);
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
