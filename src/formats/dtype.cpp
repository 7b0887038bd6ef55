#include "src/formats/dtype.h"

#include <array>

namespace settrain {
namespace {

constexpr std::array<DtypeNames, 13> kDtypes{{
    {Dtype::kFloat64, 8, "float64", "F64", "DoubleStorage"},
    {Dtype::kFloat32, 4, "float32", "F32", "FloatStorage"},
    {Dtype::kFloat16, 2, "float16", "F16", "HalfStorage"},
    {Dtype::kBfloat16, 2, "bfloat16", "BF16", "BFloat16Storage"},
    {Dtype::kInt64, 8, "int64", "I64", "LongStorage"},
    {Dtype::kInt32, 4, "int32", "I32", "IntStorage"},
    {Dtype::kInt16, 2, "int16", "I16", "ShortStorage"},
    {Dtype::kInt8, 1, "int8", "I8", "CharStorage"},
    {Dtype::kUint64, 8, "uint64", "U64", ""},
    {Dtype::kUint32, 4, "uint32", "U32", ""},
    {Dtype::kUint16, 2, "uint16", "U16", ""},
    {Dtype::kUint8, 1, "uint8", "U8", "ByteStorage"},
    {Dtype::kBool, 1, "bool", "BOOL", "BoolStorage"},
}};

constexpr bool in_order_of_the_enumeration() {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order_of_the_enumeration());

}  // namespace

std::span<const DtypeNames> dtypes() {
  return kDtypes;
}

const DtypeNames& names_of(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}

}  // namespace settrain
