// LibTorch's operations as ONNX's.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/formats/onnx/graph.h"

namespace settrain {

/// The size of the batch with which operations are recorded. In the ONNX graph it is open.
inline constexpr int64_t kTracedBatch = 2;

/// Turns recorded operations into nodes, one after the other.
class Translation {
 public:
  /// `images`: the name of an input whose first dimension is the batch.
  Translation(OnnxGraph& graph, std::string images) : graph_(graph), images_(std::move(images)) {}

  /// What a weight is to be called.
  void name_weight(const at::Tensor& weight, const std::string& name) { weights_[weight.const_data_ptr()] = name; }

  /// That `value` is there already, under this name.
  void know(const torch::jit::Value* value, const std::string& name) { names_[value] = name; }

  /// Throws Error for an operation that is not known.
  void add(const torch::jit::Node& node);

  /// The name of a tensor.
  std::string value(const torch::jit::Value* of);

  // For the functions that translate one operation each; `i` is an argument's number.
  OnnxGraph& graph() { return graph_; }
  std::string tensor(const torch::jit::Node& node, size_t i) { return value(node.input(i)); }
  static bool is_none(const torch::jit::Node& node, size_t i);
  static bool boolean(const torch::jit::Node& node, size_t i);
  static int64_t integer(const torch::jit::Node& node, size_t i);
  static double real(const torch::jit::Node& node, size_t i);
  static std::vector<int64_t> integers(const torch::jit::Node& node, size_t i);
  /// Of a tensor, with kTracedBatch for the batch.
  static std::vector<int64_t> sizes(const torch::jit::Value* of);
  /// [1] int64: the batch's size.
  std::string batch();

 private:
  OnnxGraph& graph_;
  std::string images_, batch_;
  std::unordered_map<const torch::jit::Value*, std::string> names_;
  std::map<const void*, std::string> weights_;
  std::map<const void*, std::string> constants_;  // those in the graph already
};

}  // namespace settrain
