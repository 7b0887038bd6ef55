#include "src/train/tensor_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/formats/safetensors.h"
#include "src/formats/weight_file.h"
#include "src/train/weight_tensors.h"

namespace settrain {

void write_tensor_file(const std::filesystem::path& file, const TensorMap& tensors, const TextMap& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    const auto dtype = tensor.defined() ? dtype_of(tensor.scalar_type()) : std::nullopt;
    if (!dtype || tensor.layout() != at::kStrided) {
      throw RunError(
          fmt::format("'{}': tensor '{}' is undefined, sparse, or of a dtype that safetensors files do not hold",
                      file.string(), name));
    }
    entries.push_back({name, *dtype, tensor.sizes().vec()});
  }
  write_safetensors(file, std::move(entries), metadata, [&](const SafetensorsEntry& entry, AtomicFile& output) {
    const at::Tensor plain = tensors.at(entry.name).detach().to(at::kCPU).contiguous();
    output.write(plain.const_data_ptr(), entry.size());
  });
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  Contents contents = safetensors_contents(file);
  Safetensors result{.tensors = {}, .metadata = std::move(contents.metadata)};
  for (const TensorEntry& entry : contents.tensors) {
    at::Tensor tensor = at::empty(entry.shape, at::dtype(scalar_type(entry.dtype)));
    read_contiguous(file, entry, tensor.mutable_data_ptr());
    result.tensors.emplace(joined(entry.path), std::move(tensor));
  }
  return result;
}

}  // namespace settrain
