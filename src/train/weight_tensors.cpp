#include "src/train/weight_tensors.h"

#include <ATen/ops/empty.h>

namespace settrain {

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return at::kDouble;
    case Dtype::kFloat32:
      return at::kFloat;
    case Dtype::kFloat16:
      return at::kHalf;
    case Dtype::kBfloat16:
      return at::kBFloat16;
    case Dtype::kInt64:
      return at::kLong;
    case Dtype::kInt32:
      return at::kInt;
    case Dtype::kInt16:
      return at::kShort;
    case Dtype::kInt8:
      return at::kChar;
    case Dtype::kUint64:
      return at::kUInt64;
    case Dtype::kUint32:
      return at::kUInt32;
    case Dtype::kUint16:
      return at::kUInt16;
    case Dtype::kUint8:
      return at::kByte;
    case Dtype::kBool:
      break;
  }
  return at::kBool;
}

std::optional<Dtype> dtype_of(at::ScalarType type) {
  for (const DtypeNames& names : dtypes()) {
    if (scalar_type(names.dtype) == type) return names.dtype;
  }
  return std::nullopt;
}

at::Tensor read_tensor(WeightFile& file, const TensorEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, at::dtype(scalar_type(entry.dtype)));
  file.read(entry, tensor.mutable_data_ptr());
  return tensor;
}

}  // namespace settrain
