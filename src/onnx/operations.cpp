#include "src/onnx/operations.h"

#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/core/error.h"

namespace settrain {
namespace {

namespace jit = torch::jit;
using Node = jit::Node;
using Integers = std::vector<int64_t>;
using Translate = std::string (*)(Translation&, const Node&);

int64_t from_the_front(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

size_t rank_of(const Node& node, size_t i) {
  return Translation::sizes(node.input(i)).size();
}

/// ONNX pads every side by itself.
Integers both_sides(const Integers& padding) {
  Integers sides = padding;
  sides.insert(sides.end(), padding.begin(), padding.end());
  return sides;
}

/// A list of one number stands for both dimensions.
Integers of_both(Integers values) {
  if (values.size() == 1) values.push_back(values.front());
  return values;
}

void must(bool holds, const Node& node, const char* what) {
  if (!holds) throw Error(fmt::format("ONNX export: {} {}", node.kind().toQualString(), what));
}

template <const char* op>
std::string unary(Translation& to, const Node& node) {
  return to.graph().add(op, {to.tensor(node, 0)});
}

template <const char* op>
std::string binary(Translation& to, const Node& node) {
  return to.graph().add(op, {to.tensor(node, 0), to.tensor(node, 1)});
}

std::string same(Translation& to, const Node& node) {
  must(node.output()->type()->expectRef<c10::TensorType>().scalarType() == at::kFloat, node, "to another type");
  return to.tensor(node, 0);
}

std::string add(Translation& to, const Node& node) {
  must(Translation::real(node, 2) == 1, node, "with a factor");
  return to.graph().add("Add", {to.tensor(node, 0), to.tensor(node, 1)});
}

std::string convolution(Translation& to, const Node& node) {
  must(!Translation::boolean(node, 6), node, "transposed");
  std::vector<std::string> inputs{to.tensor(node, 0), to.tensor(node, 1)};
  if (!Translation::is_none(node, 2)) inputs.push_back(to.tensor(node, 2));
  return to.graph().add("Conv", inputs,
                        {{"strides", of_both(Translation::integers(node, 3))},
                         {"pads", both_sides(of_both(Translation::integers(node, 4)))},
                         {"dilations", of_both(Translation::integers(node, 5))},
                         {"group", Translation::integer(node, 8)}});
}

std::string batch_norm(Translation& to, const Node& node) {
  must(!Translation::boolean(node, 5), node, "in training");
  std::vector<std::string> inputs;
  for (size_t i = 0; i < 5; ++i) inputs.push_back(to.tensor(node, i));
  return to.graph().add("BatchNormalization", inputs, {{"epsilon", static_cast<float>(Translation::real(node, 7))}});
}

std::string layer_norm(Translation& to, const Node& node) {
  const auto dimensions = static_cast<int64_t>(Translation::integers(node, 1).size());
  return to.graph().add("LayerNormalization", {to.tensor(node, 0), to.tensor(node, 2), to.tensor(node, 3)},
                        {{"axis", -dimensions}, {"epsilon", static_cast<float>(Translation::real(node, 4))}});
}

/// Without strides a pool's windows lie side by side.
Integers pool_strides(const Node& node) {
  const Integers strides = Translation::integers(node, 2);
  return of_both(strides.empty() ? Translation::integers(node, 1) : strides);
}

std::string max_pool(Translation& to, const Node& node) {
  return to.graph().add("MaxPool", {to.tensor(node, 0)},
                        {{"kernel_shape", of_both(Translation::integers(node, 1))},
                         {"strides", pool_strides(node)},
                         {"pads", both_sides(of_both(Translation::integers(node, 3)))},
                         {"dilations", of_both(Translation::integers(node, 4))},
                         {"ceil_mode", int64_t{Translation::boolean(node, 5)}}});
}

std::string average_pool(Translation& to, const Node& node) {
  must(Translation::is_none(node, 6), node, "with a divisor");
  return to.graph().add("AveragePool", {to.tensor(node, 0)},
                        {{"kernel_shape", of_both(Translation::integers(node, 1))},
                         {"strides", pool_strides(node)},
                         {"pads", both_sides(of_both(Translation::integers(node, 3)))},
                         {"ceil_mode", int64_t{Translation::boolean(node, 4)}},
                         {"count_include_pad", int64_t{Translation::boolean(node, 5)}}});
}

std::string mean(Translation& to, const Node& node) {
  return to.graph().add(
      "ReduceMean", {to.tensor(node, 0)},
      {{"axes", Translation::integers(node, 1)}, {"keepdims", int64_t{Translation::boolean(node, 2)}}});
}

/// Euclidean, along a dimension.
std::string norm(Translation& to, const Node& node) {
  must(Translation::real(node, 1) == 2, node, "of another power than 2");
  return to.graph().add(
      "ReduceL2", {to.tensor(node, 0)},
      {{"axes", Translation::integers(node, 2)}, {"keepdims", int64_t{Translation::boolean(node, 3)}}});
}

std::string clamp_min(Translation& to, const Node& node) {
  return to.graph().add("Max",
                        {to.tensor(node, 0), to.graph().constant(static_cast<float>(Translation::real(node, 1)))});
}

std::string linear(Translation& to, const Node& node) {
  OnnxGraph& graph = to.graph();
  const std::string weight = graph.add("Transpose", {to.tensor(node, 1)}, {{"perm", Integers{1, 0}}});
  const std::string product = graph.add("MatMul", {to.tensor(node, 0), weight});
  return Translation::is_none(node, 2) ? product : graph.add("Add", {product, to.tensor(node, 2)});
}

std::string gelu(Translation& to, const Node& node) {
  OnnxGraph& graph = to.graph();
  const std::string x = to.tensor(node, 0), root = graph.constant(std::sqrt(2.0F));
  const std::string cdf =
      graph.add("Mul", {graph.add("Add", {graph.add("Erf", {graph.add("Div", {x, root})}), graph.constant(1.0F)}),
                        graph.constant(0.5F)});
  return graph.add("Mul", {x, cdf});
}

std::string concatenate(Translation& to, const Node& node) {
  std::vector<std::string> parts;
  for (const jit::Value* part : node.input(0)->node()->inputs()) parts.push_back(to.value(part));
  const size_t rank = Translation::sizes(node.output()).size();
  return to.graph().add("Concat", parts, {{"axis", from_the_front(Translation::integer(node, 1), rank)}});
}

std::string permute(Translation& to, const Node& node) {
  return to.graph().add("Transpose", {to.tensor(node, 0)}, {{"perm", Translation::integers(node, 1)}});
}

std::string transpose(Translation& to, const Node& node) {
  Integers order(rank_of(node, 0));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(from_the_front(Translation::integer(node, 1), order.size()))],
            order[static_cast<size_t>(from_the_front(Translation::integer(node, 2), order.size()))]);
  return to.graph().add("Transpose", {to.tensor(node, 0)}, {{"perm", order}});
}

/// view, reshape and flatten, which leave the batch in front.
std::string reshape(Translation& to, const Node& node) {
  Integers shape = Translation::sizes(node.output());
  const Integers before = Translation::sizes(node.input(0));
  must(shape.front() == kTracedBatch && before.front() == kTracedBatch, node, "across the batch");
  shape.front() = 0;  // as it was
  return to.graph().add("Reshape", {to.tensor(node, 0), to.graph().constant(shape)});
}

std::string expand(Translation& to, const Node& node) {
  const Integers shape = Translation::sizes(node.output());
  must(shape.front() == kTracedBatch, node, "of something else than the batch");
  const Integers rest(shape.begin() + 1, shape.end());
  const std::string sizes = to.graph().add("Concat", {to.batch(), to.graph().constant(rest)}, {{"axis", int64_t{0}}});
  return to.graph().add("Expand", {to.tensor(node, 0), sizes});
}

std::string select(Translation& to, const Node& node) {
  const std::string index = to.graph().constant(Translation::integer(node, 2));
  return to.graph().add("Gather", {to.tensor(node, 0), index},
                        {{"axis", from_the_front(Translation::integer(node, 1), rank_of(node, 0))}});
}

std::string slice(Translation& to, const Node& node) {
  OnnxGraph& graph = to.graph();
  const auto one = [&](size_t i, int64_t otherwise) {
    return graph.constant(Integers{Translation::is_none(node, i) ? otherwise : Translation::integer(node, i)});
  };
  return graph.add("Slice",
                   {to.tensor(node, 0), one(2, 0), one(3, std::numeric_limits<int64_t>::max()), one(1, 0), one(4, 1)});
}

/// LibTorch counts from the last dimension, before and behind each; ONNX wants all begins, then all ends.
std::string pad(Translation& to, const Node& node) {
  const Integers padding = Translation::integers(node, 1);
  const size_t rank = rank_of(node, 0);
  Integers sides(2 * rank);
  for (size_t i = 0; i < padding.size(); ++i) sides[(i % 2) * rank + rank - 1 - i / 2] = padding[i];
  return to.graph().add("Pad", {to.tensor(node, 0), to.graph().constant(sides),
                                to.graph().constant(static_cast<float>(Translation::real(node, 2)))});
}

std::string attention(Translation& to, const Node& node) {
  must(Translation::is_none(node, 3) && !Translation::boolean(node, 5) && Translation::is_none(node, 6), node,
       "with a mask or a scale");
  OnnxGraph& graph = to.graph();
  const auto features = static_cast<double>(Translation::sizes(node.input(0)).back());
  const std::string keys = graph.add("Transpose", {to.tensor(node, 1)}, {{"perm", Integers{0, 1, 3, 2}}});
  const std::string products = graph.add("MatMul", {to.tensor(node, 0), keys});
  const std::string scaled = graph.add("Mul", {products, graph.constant(static_cast<float>(1 / std::sqrt(features)))});
  return graph.add("MatMul", {graph.add("Softmax", {scaled}, {{"axis", int64_t{-1}}}), to.tensor(node, 2)});
}

constexpr char kRelu[] = "Relu", kMul[] = "Mul", kDiv[] = "Div", kMatMul[] = "MatMul";

const std::map<std::string, Translate>& translations() {
  static const std::map<std::string, Translate> all{
      {"aten::_convolution", convolution},
      {"aten::add", add},
      {"aten::add_", add},
      {"aten::avg_pool2d", average_pool},
      {"aten::batch_norm", batch_norm},
      {"aten::cat", concatenate},
      {"aten::clamp_min", clamp_min},
      {"aten::constant_pad_nd", pad},
      {"aten::contiguous", same},
      {"aten::div", binary<kDiv>},
      {"aten::expand", expand},
      {"aten::flatten", reshape},
      {"aten::gelu", gelu},
      {"aten::layer_norm", layer_norm},
      {"aten::linear", linear},
      {"aten::matmul", binary<kMatMul>},
      {"aten::max_pool2d", max_pool},
      {"aten::mean", mean},
      {"aten::mul", binary<kMul>},
      {"aten::norm", norm},
      {"aten::permute", permute},
      {"aten::relu_", unary<kRelu>},
      {"aten::reshape", reshape},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::select", select},
      {"aten::slice", slice},
      {"aten::to", same},
      {"aten::transpose", transpose},
      {"aten::view", reshape},
  };
  return all;
}

c10::IValue constant_of(const jit::Value* value) {
  const std::optional<c10::IValue> constant = jit::toIValue(value);
  if (!constant)
    throw Error(fmt::format("ONNX export: an argument that is computed by {}", value->node()->kind().toQualString()));
  return *constant;
}

}  // namespace

bool Translation::is_none(const Node& node, size_t i) {
  return node.input(i)->mustBeNone();
}

bool Translation::boolean(const Node& node, size_t i) {
  return constant_of(node.input(i)).toBool();
}

int64_t Translation::integer(const Node& node, size_t i) {
  return constant_of(node.input(i)).toInt();
}

double Translation::real(const Node& node, size_t i) {
  return constant_of(node.input(i)).toScalar().toDouble();
}

std::vector<int64_t> Translation::integers(const Node& node, size_t i) {
  const Node& list = *node.input(i)->node();
  std::vector<int64_t> values;
  for (size_t element = 0; element < list.inputs().size(); ++element) values.push_back(integer(list, element));
  return values;
}

std::vector<int64_t> Translation::sizes(const jit::Value* of) {
  return of->type()->expectRef<c10::TensorType>().sizes().concrete_sizes().value();
}

std::string Translation::batch() {
  if (batch_.empty()) {
    batch_ = graph_.add("Shape", {images_}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  }
  return batch_;
}

std::string Translation::value(const jit::Value* of) {
  if (const auto found = names_.find(of); found != names_.end()) return found->second;
  const at::Tensor tensor = constant_of(of).toTensor();
  const void* const data = tensor.const_data_ptr();
  if (const auto found = constants_.find(data); found != constants_.end()) return found->second;
  const auto weight = weights_.find(data);
  if (tensor.scalar_type() != at::kFloat) throw Error("ONNX export: a constant of another type than float32");
  const at::Tensor values = tensor.contiguous();
  const std::string name =
      graph_.constant({OnnxType::kFloat32, values.sizes().vec(), values.const_data_ptr(), values.nbytes()},
                      weight == weights_.end() ? "" : weight->second);
  return constants_[data] = name;
}

void Translation::add(const Node& node) {
  const std::string kind = node.kind().toQualString();
  if (kind.starts_with("prim::")) return;  // constants and lists, which are read where they are used
  const auto found = translations().find(kind);
  if (found == translations().end()) throw Error("ONNX export: there is no translation of " + kind);
  names_[node.output()] = found->second(*this, node);
}

}  // namespace settrain
