#include "src/checkpoint/tensor_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/formats/safetensors.h"

namespace settrain {
namespace {

constexpr std::array<std::pair<Dtype, at::ScalarType>, 13> kScalarTypes{{{Dtype::kFloat64, at::kDouble},
                                                                         {Dtype::kFloat32, at::kFloat},
                                                                         {Dtype::kFloat16, at::kHalf},
                                                                         {Dtype::kBfloat16, at::kBFloat16},
                                                                         {Dtype::kInt64, at::kLong},
                                                                         {Dtype::kInt32, at::kInt},
                                                                         {Dtype::kInt16, at::kShort},
                                                                         {Dtype::kInt8, at::kChar},
                                                                         {Dtype::kUint64, at::kUInt64},
                                                                         {Dtype::kUint32, at::kUInt32},
                                                                         {Dtype::kUint16, at::kUInt16},
                                                                         {Dtype::kUint8, at::kByte},
                                                                         {Dtype::kBool, at::kBool}}};

}  // namespace

at::ScalarType scalar_type(Dtype dtype) {
  return std::ranges::find(kScalarTypes, dtype, &std::pair<Dtype, at::ScalarType>::first)->second;
}

std::optional<Dtype> dtype_of(at::ScalarType type) {
  const auto found = std::ranges::find(kScalarTypes, type, &std::pair<Dtype, at::ScalarType>::second);
  return found == kScalarTypes.end() ? std::nullopt : std::optional(found->first);
}

at::Tensor read_tensor(WeightFile& file, const TensorEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, at::dtype(scalar_type(entry.dtype)));
  file.read(entry, tensor.mutable_data_ptr());
  return tensor;
}

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
