#include "src/run/safetensors.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "src/core/atomic_file.h"
#include "src/core/error.h"
#include "src/run/weight_tensors.h"
#include "src/weights/safetensors_header.h"
#include "src/weights/weight_file.h"

namespace settrain {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and no bytes are swapped here");

SafetensorsHeader header_for(const TensorMap& tensors, const TextMap& metadata, const std::string& place) {
  SafetensorsHeader header{{}, metadata};
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") throw RunError(place + ": a tensor cannot be named __metadata__");
    const auto dtype = tensor.defined() ? dtype_of(tensor.scalar_type()) : std::nullopt;
    if (!dtype || tensor.layout() != at::kStrided) {
      throw RunError(place + ": tensor '" + name +
                     "' is undefined, sparse, or of a dtype that safetensors files do not hold");
    }
    header.entries.push_back({name, *dtype, tensor.sizes().vec()});
  }
  // Wide elements first, as Python's package has it: every tensor is then aligned to its elements.
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) { return bytes_of(a.dtype) > bytes_of(b.dtype); });
  uint64_t offset = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = offset;
    offset += tensors.at(entry.name).nbytes();
    entry.end = offset;
  }
  return header;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, const TensorMap& tensors, const TextMap& metadata) {
  const SafetensorsHeader header = header_for(tensors, metadata, fmt::format("'{}'", file.string()));
  const std::string json = encode_safetensors_header(header, fmt::format("'{}'", file.string()));
  const uint64_t length = json.size();
  AtomicFile output(file);
  output.write(&length, sizeof length);
  output.write(json);
  for (const SafetensorsEntry& entry : header.entries) {
    const at::Tensor plain = tensors.at(entry.name).detach().to(at::kCPU).contiguous();
    output.write(plain.const_data_ptr(), entry.size());
  }
  output.commit();
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
