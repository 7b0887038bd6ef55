#include "models/named_tensors.h"

namespace settrain {
namespace {

void collect(const torch::nn::Module& module, const std::string& prefix, NamedTensors& tensors) {
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    tensors.emplace_back(prefix + item.key(), item.value());
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    tensors.emplace_back(prefix + item.key(), item.value());
  for (const auto& child : module.named_children()) collect(*child.value(), prefix + child.key() + ".", tensors);
}

}  // namespace

bool is_part_of(std::string_view name, std::string_view part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
}

NamedTensors state_dict(const torch::nn::Module& module) {
  NamedTensors tensors;
  collect(module, "", tensors);
  return tensors;
}

}  // namespace settrain
