// The tensors of files of weights as ATen's.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "src/formats/contents.h"
#include "src/formats/weight_file.h"

namespace settrain {

at::ScalarType scalar_type(Dtype dtype);

/// Nothing for a type that files of weights do not hold.
std::optional<Dtype> dtype_of(at::ScalarType type);

/// Reads one of the tensors in `file`, to the CPU, contiguous. Throws RunError as WeightFile::read().
at::Tensor read_tensor(WeightFile& file, const TensorEntry& entry);

}  // namespace settrain
