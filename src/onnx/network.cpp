// add_network(): LibTorch's operations as ONNX's.
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/onnx/nodes.h"

namespace settrain {
namespace {

namespace jit = torch::jit;
using Node = jit::Node;
using Integers = std::vector<int64_t>;

/// The size of the batch with which operations are recorded. In the ONNX graph it is open.
constexpr int64_t kTracedBatch = 2;

c10::IValue constant_of(const jit::Value* value) {
  const std::optional<c10::IValue> constant = jit::toIValue(value);
  if (!constant)
    throw Error(fmt::format("ONNX export: an argument that is computed by {}", value->node()->kind().toQualString()));
  return *constant;
}

// Arguments of an operation, by their numbers.
bool is_none(const Node& node, size_t i) {
  return node.input(i)->mustBeNone();
}

c10::IValue argument(const Node& node, size_t i) {
  return constant_of(node.input(i));
}

double real(const Node& node, size_t i) {
  return argument(node, i).toScalar().toDouble();
}

Integers integers(const Node& node, size_t i) {
  const Node& list = *node.input(i)->node();
  Integers values;
  for (const jit::Value* element : list.inputs()) values.push_back(constant_of(element).toInt());
  return values;
}

/// The sizes of a tensor, with kTracedBatch for the batch.
Integers sizes_of(const jit::Value* tensor) {
  return tensor->type()->expectRef<c10::TensorType>().sizes().concrete_sizes().value();
}

/// Turns recorded operations into nodes, one after the other.
class Translation {
 public:
  /// `images`: the name of an input whose first dimension is the batch.
  Translation(OnnxGraph& graph, std::string images) : graph_(graph), images_(std::move(images)) {}

  /// Sets the name of a weight.
  void name_weight(const at::Tensor& weight, const std::string& name) { weights_[weight.const_data_ptr()] = name; }

  /// Sets the name of a value that is in the graph already.
  void know(const jit::Value* value, const std::string& name) { names_[value] = name; }

  /// Throws Error for an operation that is not known.
  void add(const Node& node);

  /// The name of a tensor.
  std::string value(const jit::Value* of) {
    if (const auto found = names_.find(of); found != names_.end()) return found->second;
    const c10::IValue constant = constant_of(of);
    if (constant.isScalar()) return graph_.constant(static_cast<float>(constant.toScalar().toDouble()));
    const at::Tensor tensor = constant.toTensor();
    const void* const data = tensor.const_data_ptr();
    if (const auto found = constants_.find(data); found != constants_.end()) return found->second;
    if (tensor.scalar_type() == at::kDouble && tensor.dim() == 0) {  // a number in the program
      return graph_.constant(static_cast<float>(tensor.item<double>()));
    }
    if (tensor.scalar_type() != at::kFloat) throw Error("ONNX export: a constant of another type than float32");
    const auto weight = weights_.find(data);
    const at::Tensor values = tensor.contiguous();
    const std::string name =
        graph_.constant({OnnxType::kFloat32, values.sizes().vec(), values.const_data_ptr(), values.nbytes()},
                        weight == weights_.end() ? "" : weight->second);
    return constants_[data] = name;
  }

  // For the functions that translate one operation each; `i` is an argument's number.
  OnnxGraph& graph() { return graph_; }
  std::string tensor(const Node& node, size_t i) { return value(node.input(i)); }

  /// [1] int64: the batch's size.
  std::string batch() {
    if (batch_.empty()) {
      batch_ = graph_.add("Shape", {images_}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    }
    return batch_;
  }

 private:
  OnnxGraph& graph_;
  std::string images_, batch_;
  std::unordered_map<const jit::Value*, std::string> names_;
  std::map<const void*, std::string> weights_;
  std::map<const void*, std::string> constants_;  // those in the graph already
};

using Translate = std::string (*)(Translation&, const Node&);

int64_t from_the_front(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

size_t rank_of(const Node& node, size_t i) {
  return sizes_of(node.input(i)).size();
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
  must(real(node, 2) == 1, node, "with a factor");
  return to.graph().add("Add", {to.tensor(node, 0), to.tensor(node, 1)});
}

std::string convolution(Translation& to, const Node& node) {
  must(!argument(node, 6).toBool(), node, "transposed");
  std::vector<std::string> inputs{to.tensor(node, 0), to.tensor(node, 1)};
  if (!is_none(node, 2)) inputs.push_back(to.tensor(node, 2));
  return to.graph().add("Conv", inputs,
                        {{"strides", of_both(integers(node, 3))},
                         {"pads", both_sides(of_both(integers(node, 4)))},
                         {"dilations", of_both(integers(node, 5))},
                         {"group", argument(node, 8).toInt()}});
}

std::string batch_norm(Translation& to, const Node& node) {
  must(!argument(node, 5).toBool(), node, "in training");
  std::vector<std::string> inputs;
  for (size_t i = 0; i < 5; ++i) inputs.push_back(to.tensor(node, i));
  return to.graph().add("BatchNormalization", inputs, {{"epsilon", static_cast<float>(real(node, 7))}});
}

std::string layer_norm(Translation& to, const Node& node) {
  const auto dimensions = static_cast<int64_t>(integers(node, 1).size());
  return to.graph().add("LayerNormalization", {to.tensor(node, 0), to.tensor(node, 2), to.tensor(node, 3)},
                        {{"axis", -dimensions}, {"epsilon", static_cast<float>(real(node, 4))}});
}

/// Without strides a pool's windows lie side by side.
Integers pool_strides(const Node& node) {
  const Integers strides = integers(node, 2);
  return of_both(strides.empty() ? integers(node, 1) : strides);
}

std::string max_pool(Translation& to, const Node& node) {
  return to.graph().add("MaxPool", {to.tensor(node, 0)},
                        {{"kernel_shape", of_both(integers(node, 1))},
                         {"strides", pool_strides(node)},
                         {"pads", both_sides(of_both(integers(node, 3)))},
                         {"dilations", of_both(integers(node, 4))},
                         {"ceil_mode", int64_t{argument(node, 5).toBool()}}});
}

std::string average_pool(Translation& to, const Node& node) {
  must(is_none(node, 6), node, "with a divisor");
  return to.graph().add("AveragePool", {to.tensor(node, 0)},
                        {{"kernel_shape", of_both(integers(node, 1))},
                         {"strides", pool_strides(node)},
                         {"pads", both_sides(of_both(integers(node, 3)))},
                         {"ceil_mode", int64_t{argument(node, 4).toBool()}},
                         {"count_include_pad", int64_t{argument(node, 5).toBool()}}});
}

/// Means of parts that may overlap, at places which depend on the size. They are two products with matrices, one from
/// the left and one from the right, since an image's size is fixed in the graph.
std::string adaptive_average_pool(Translation& to, const Node& node) {
  const Integers from = sizes_of(node.input(0)), out = of_both(integers(node, 1));
  const auto shares = [&](int64_t size, int64_t parts, bool is_transposed) {
    std::vector<float> matrix(static_cast<size_t>(size * parts));
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = part * size / parts, end = ((part + 1) * size + parts - 1) / parts;
      for (int64_t i = begin; i < end; ++i) {
        matrix[static_cast<size_t>(is_transposed ? i * parts + part : part * size + i)] =
            1 / static_cast<float>(end - begin);
      }
    }
    const Integers shape = is_transposed ? Integers{size, parts} : Integers{parts, size};
    return to.graph().constant(matrix, shape);
  };
  const std::string rows = to.graph().add("MatMul", {shares(from[2], out[0], false), to.tensor(node, 0)});
  return to.graph().add("MatMul", {rows, shares(from[3], out[1], true)});
}

std::string mean(Translation& to, const Node& node) {
  return to.graph().add("ReduceMean", {to.tensor(node, 0)},
                        {{"axes", integers(node, 1)}, {"keepdims", int64_t{argument(node, 2).toBool()}}});
}

/// Euclidean, along a dimension.
std::string norm(Translation& to, const Node& node) {
  must(real(node, 1) == 2, node, "of another power than 2");
  return to.graph().add("ReduceL2", {to.tensor(node, 0)},
                        {{"axes", integers(node, 2)}, {"keepdims", int64_t{argument(node, 3).toBool()}}});
}

std::string clamp_min(Translation& to, const Node& node) {
  return to.graph().add("Max", {to.tensor(node, 0), to.graph().constant(static_cast<float>(real(node, 1)))});
}

std::string hardtanh(Translation& to, const Node& node) {
  const auto bound = [&](size_t i) { return to.graph().constant(static_cast<float>(real(node, i))); };
  return to.graph().add("Clip", {to.tensor(node, 0), bound(1), bound(2)});
}

std::string silu(Translation& to, const Node& node) {
  const std::string x = to.tensor(node, 0);
  return to.graph().add("Mul", {x, to.graph().add("Sigmoid", {x})});
}

std::string hard_sigmoid(Translation& to, const Node& node) {
  return to.graph().add("HardSigmoid", {to.tensor(node, 0)}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
}

std::string linear(Translation& to, const Node& node) {
  OnnxGraph& graph = to.graph();
  const std::string weight = graph.add("Transpose", {to.tensor(node, 1)}, {{"perm", Integers{1, 0}}});
  const std::string product = graph.add("MatMul", {to.tensor(node, 0), weight});
  return is_none(node, 2) ? product : graph.add("Add", {product, to.tensor(node, 2)});
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
  const size_t rank = sizes_of(node.output()).size();
  return to.graph().add("Concat", parts, {{"axis", from_the_front(argument(node, 1).toInt(), rank)}});
}

std::string permute(Translation& to, const Node& node) {
  return to.graph().add("Transpose", {to.tensor(node, 0)}, {{"perm", integers(node, 1)}});
}

std::string transpose(Translation& to, const Node& node) {
  Integers order(rank_of(node, 0));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(from_the_front(argument(node, 1).toInt(), order.size()))],
            order[static_cast<size_t>(from_the_front(argument(node, 2).toInt(), order.size()))]);
  return to.graph().add("Transpose", {to.tensor(node, 0)}, {{"perm", order}});
}

/// view, reshape, flatten and unsqueeze, which leave the batch in front.
std::string reshape(Translation& to, const Node& node) {
  Integers shape = sizes_of(node.output());
  const Integers before = sizes_of(node.input(0));
  must(shape.front() == kTracedBatch && before.front() == kTracedBatch, node, "across the batch");
  shape.front() = 0;  // as it was
  return to.graph().add("Reshape", {to.tensor(node, 0), to.graph().constant(shape)});
}

std::string expand(Translation& to, const Node& node) {
  const Integers shape = sizes_of(node.output());
  must(shape.front() == kTracedBatch, node, "of something else than the batch");
  const Integers rest(shape.begin() + 1, shape.end());
  const std::string sizes = to.graph().add("Concat", {to.batch(), to.graph().constant(rest)}, {{"axis", int64_t{0}}});
  return to.graph().add("Expand", {to.tensor(node, 0), sizes});
}

std::string select(Translation& to, const Node& node) {
  const std::string index = to.graph().constant(argument(node, 2).toInt());
  return to.graph().add("Gather", {to.tensor(node, 0), index},
                        {{"axis", from_the_front(argument(node, 1).toInt(), rank_of(node, 0))}});
}

std::string slice(Translation& to, const Node& node) {
  OnnxGraph& graph = to.graph();
  const auto one = [&](size_t i, int64_t otherwise) {
    return graph.constant(Integers{is_none(node, i) ? otherwise : argument(node, i).toInt()});
  };
  return graph.add("Slice",
                   {to.tensor(node, 0), one(2, 0), one(3, std::numeric_limits<int64_t>::max()), one(1, 0), one(4, 1)});
}

/// LibTorch counts from the last dimension, before and behind each; ONNX wants all begins, then all ends.
std::string pad(Translation& to, const Node& node) {
  const Integers padding = integers(node, 1);
  const size_t rank = rank_of(node, 0);
  Integers sides(2 * rank);
  for (size_t i = 0; i < padding.size(); ++i) sides[(i % 2) * rank + rank - 1 - i / 2] = padding[i];
  return to.graph().add(
      "Pad", {to.tensor(node, 0), to.graph().constant(sides), to.graph().constant(static_cast<float>(real(node, 2)))});
}

std::string attention(Translation& to, const Node& node) {
  must(is_none(node, 3) && !argument(node, 5).toBool() && is_none(node, 6), node, "with a mask or a scale");
  OnnxGraph& graph = to.graph();
  const auto features = static_cast<double>(sizes_of(node.input(0)).back());
  const std::string keys = graph.add("Transpose", {to.tensor(node, 1)}, {{"perm", Integers{0, 1, 3, 2}}});
  const std::string products = graph.add("MatMul", {to.tensor(node, 0), keys});
  const std::string scaled = graph.add("Mul", {products, graph.constant(static_cast<float>(1 / std::sqrt(features)))});
  return graph.add("MatMul", {graph.add("Softmax", {scaled}, {{"axis", int64_t{-1}}}), to.tensor(node, 2)});
}

constexpr char kRelu[] = "Relu", kHardSwish[] = "HardSwish", kSigmoid[] = "Sigmoid", kMul[] = "Mul", kDiv[] = "Div",
               kMatMul[] = "MatMul";

const std::map<std::string, Translate>& translations() {
  static const std::map<std::string, Translate> all{
      {"aten::_convolution", convolution},
      {"aten::adaptive_avg_pool2d", adaptive_average_pool},
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
      {"aten::hardsigmoid", hard_sigmoid},
      {"aten::hardswish", unary<kHardSwish>},
      {"aten::hardtanh_", hardtanh},
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
      {"aten::sigmoid", unary<kSigmoid>},
      {"aten::silu", silu},
      {"aten::slice", slice},
      {"aten::to", same},
      {"aten::transpose", transpose},
      {"aten::unsqueeze", reshape},
      {"aten::view", reshape},
  };
  return all;
}

void Translation::add(const Node& node) {
  const std::string kind = node.kind().toQualString();
  if (kind.starts_with("prim::")) return;  // constants and lists are read where they are used
  const auto found = translations().find(kind);
  if (found == translations().end()) throw Error("ONNX export: there is no translation of " + kind);
  names_[node.output()] = found->second(*this, node);
}

/// While it lives, parameters ask for no gradients: they are constants of the recorded graph, which must not.
class WithoutGradients {
 public:
  explicit WithoutGradients(const Model& model) {
    for (at::Tensor& parameter : model.parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.set_requires_grad(false);
      changed_.push_back(parameter);
    }
  }
  WithoutGradients(const WithoutGradients&) = delete;
  WithoutGradients& operator=(const WithoutGradients&) = delete;
  ~WithoutGradients() {
    for (at::Tensor& parameter : changed_) parameter.set_requires_grad(true);
  }

 private:
  std::vector<at::Tensor> changed_;
  c10::NoGradGuard no_grad_;
};

std::shared_ptr<jit::Graph> recorded(Model& model, const std::vector<int64_t>& sizes) {
  const WithoutGradients guard(model);
  std::vector<int64_t> of_batch{kTracedBatch};
  of_batch.insert(of_batch.end(), sizes.begin(), sizes.end());
  const auto answer = [&model](const jit::Stack& inputs) {
    return jit::Stack{model.forward(inputs.front().toTensor()).prediction()};
  };
  const auto no_names = [](const at::Tensor&) { return std::string(); };
  return jit::tracer::trace({at::zeros(of_batch)}, answer, no_names, /*strict=*/false, /*force_outplace=*/false)
      .first->graph;
}

}  // namespace

std::string add_network(OnnxGraph& graph, Model& model, const std::string& images, const std::vector<int64_t>& sizes) {
  const std::shared_ptr<jit::Graph> from = recorded(model, sizes);
  Translation translation(graph, images);
  for (const auto& [name, tensor] : state_dict(model)) translation.name_weight(tensor, name);
  translation.know(from->inputs()[0], images);
  for (const jit::Node* node : from->nodes()) translation.add(*node);
  return translation.value(from->outputs()[0]);
}

}  // namespace settrain
