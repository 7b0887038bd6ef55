// Tensors and text metadata as safetensors files: checkpoints and exported weights; and the tensors of other programs'
// files of weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "src/formats/contents.h"
#include "src/formats/weight_file.h"

namespace settrain {

at::ScalarType scalar_type(Dtype dtype);

/// Nothing for a type that files of weights do not hold.
std::optional<Dtype> dtype_of(at::ScalarType type);

/// Reads one of the tensors in `file`, to the CPU, contiguous. Throws RunError as WeightFile::read().
at::Tensor read_tensor(WeightFile& file, const TensorEntry& entry);

using TensorMap = std::map<std::string, at::Tensor>;
using TextMap = std::map<std::string, std::string>;

/// The contents of a file.
struct Safetensors {
  TensorMap tensors;
  TextMap metadata;  // the header's __metadata__
};

/// Writes `tensors` (float64/32/16, bfloat16, int64/32/16/8, uint64/32/16/8 or bool; any device, any strides), one at a
/// time, so that no second copy of them all is made. The same tensors and metadata give the same bytes.
///
/// Throws RunError as write_safetensors() of src/formats, and for undefined and sparse tensors and other dtypes.
void write_tensor_file(const std::filesystem::path& file, const TensorMap& tensors, const TextMap& metadata = {});

/// Reads the tensors to the CPU, contiguous. Nothing in the file is trusted: throws RunError naming the file and the
/// entry where it is not a whole and valid safetensors file, or holds a dtype other than those of write_tensor_file().
Safetensors read_safetensors(const std::filesystem::path& file);

}  // namespace settrain
