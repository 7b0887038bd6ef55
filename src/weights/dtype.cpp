#include "src/weights/dtype.h"

#include <array>

namespace settrain {
namespace {

// In the order of the enumeration.
constexpr std::array<DtypeNames, 10> kDtypes{{
    {Dtype::kFloat64, 8, "float64", "F64", "DoubleStorage"},
    {Dtype::kFloat32, 4, "float32", "F32", "FloatStorage"},
    {Dtype::kFloat16, 2, "float16", "F16", "HalfStorage"},
    {Dtype::kBfloat16, 2, "bfloat16", "BF16", "BFloat16Storage"},
    {Dtype::kInt64, 8, "int64", "I64", "LongStorage"},
    {Dtype::kInt32, 4, "int32", "I32", "IntStorage"},
    {Dtype::kInt16, 2, "int16", "I16", "ShortStorage"},
    {Dtype::kInt8, 1, "int8", "I8", "CharStorage"},
    {Dtype::kUint8, 1, "uint8", "U8", "ByteStorage"},
    {Dtype::kBool, 1, "bool", "BOOL", "BoolStorage"},
}};

}  // namespace

std::span<const DtypeNames> dtypes() {
  return kDtypes;
}

const DtypeNames& names_of(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}

}  // namespace settrain
