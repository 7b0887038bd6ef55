#include "src/formats/onnx/graph.h"

#include <fmt/format.h>
#include <onnx.pb.h>  // which protoc makes of ONNX's own onnx.proto

#include <type_traits>

#include "src/core/error.h"
#include "src/core/files.h"

namespace settrain {
namespace {

constexpr int64_t kIrVersion = 8;  // that goes with the opset

void set_attribute(onnx::AttributeProto& to, const std::string& name, const OnnxAttribute& value) {
  to.set_name(name);
  std::visit(
      [&to](const auto& of) {
        using T = std::decay_t<decltype(of)>;
        if constexpr (std::is_same_v<T, int64_t>) {
          to.set_type(onnx::AttributeProto::INT);
          to.set_i(of);
        } else if constexpr (std::is_same_v<T, float>) {
          to.set_type(onnx::AttributeProto::FLOAT);
          to.set_f(of);
        } else {
          to.set_type(onnx::AttributeProto::INTS);
          to.mutable_ints()->Add(of.begin(), of.end());
        }
      },
      value);
}

void describe_value(onnx::ValueInfoProto& to, const std::string& name, OnnxType type,
                    const std::vector<int64_t>& shape) {
  to.set_name(name);
  auto& tensor = *to.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(type));
  for (const int64_t size : shape) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    if (size < 0) {
      dimension.set_dim_param("batch");
    } else {
      dimension.set_dim_value(size);
    }
  }
}

template <class T>
OnnxTensor tensor_of(OnnxType type, const T* values, size_t count, std::vector<int64_t> shape) {
  return {type, std::move(shape), values, count * sizeof(T)};
}

}  // namespace

struct OnnxGraph::Proto {
  onnx::ModelProto model;
  onnx::GraphProto& graph = *model.mutable_graph();
};

OnnxGraph::OnnxGraph() : proto_(std::make_unique<Proto>()) {
  proto_->model.set_ir_version(kIrVersion);
  proto_->model.set_producer_name("settrain");
  auto& opset = *proto_->model.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOnnxOpset);
  proto_->graph.set_name("settrain");
}

OnnxGraph::~OnnxGraph() = default;

std::string OnnxGraph::fresh(const std::string& kind) {
  return fmt::format("{}_{}", kind, next_++);
}

std::vector<std::string> OnnxGraph::add(const std::string& op, const std::vector<std::string>& inputs,
                                        const OnnxAttributes& attributes, size_t outputs) {
  onnx::NodeProto& node = *proto_->graph.add_node();
  node.set_op_type(op);
  node.set_name(fresh(op));
  for (const std::string& input : inputs) node.add_input(input);
  for (const auto& [name, value] : attributes) set_attribute(*node.add_attribute(), name, value);
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(fmt::format("{}_out{}", node.name(), i));
    node.add_output(names.back());
  }
  return names;
}

std::string OnnxGraph::add(const std::string& op, const std::vector<std::string>& inputs,
                           const OnnxAttributes& attributes) {
  return add(op, inputs, attributes, 1).front();
}

std::string OnnxGraph::constant(const OnnxTensor& tensor, const std::string& name) {
  onnx::TensorProto& initializer = *proto_->graph.add_initializer();
  initializer.set_name(name.empty() ? fresh("constant") : name);
  initializer.set_data_type(static_cast<int32_t>(tensor.type));
  for (const int64_t size : tensor.shape) initializer.add_dims(size);
  initializer.set_raw_data(tensor.data, tensor.bytes);
  return initializer.name();
}

std::string OnnxGraph::constant(const std::vector<int64_t>& values) {
  return constant(tensor_of(OnnxType::kInt64, values.data(), values.size(), {std::ssize(values)}));
}

std::string OnnxGraph::constant(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  return constant(tensor_of(OnnxType::kFloat32, values.data(), values.size(), shape));
}

std::string OnnxGraph::constant(const std::vector<double>& values, const std::vector<int64_t>& shape) {
  return constant(tensor_of(OnnxType::kFloat64, values.data(), values.size(), shape));
}

std::string OnnxGraph::constant(float value) {
  return constant(tensor_of(OnnxType::kFloat32, &value, 1, {}));
}

std::string OnnxGraph::constant(double value) {
  return constant(tensor_of(OnnxType::kFloat64, &value, 1, {}));
}

std::string OnnxGraph::constant(int64_t value) {
  return constant(tensor_of(OnnxType::kInt64, &value, 1, {}));
}

void OnnxGraph::input(const std::string& name, OnnxType type, const std::vector<int64_t>& shape) {
  describe_value(*proto_->graph.add_input(), name, type, shape);
}

void OnnxGraph::output(const std::string& name, const std::string& value, OnnxType type,
                       const std::vector<int64_t>& shape) {
  onnx::NodeProto& node = *proto_->graph.add_node();
  node.set_op_type("Identity");
  node.set_name(name);
  node.add_input(value);
  node.add_output(name);
  describe_value(*proto_->graph.add_output(), name, type, shape);
}

void OnnxGraph::fact(const std::string& key, const std::string& value) {
  auto& entry = *proto_->model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

int64_t OnnxGraph::num_nodes() const {
  return proto_->graph.node_size();
}

void OnnxGraph::write(const std::filesystem::path& file) const {
  constexpr size_t kTooMany = size_t{1} << 31;
  if (proto_->model.ByteSizeLong() >= kTooMany) {
    throw RunError(fmt::format("'{}': the model takes 2 GiB or more, which an ONNX file cannot hold", file.string()));
  }
  AtomicFile target(file);
  target.write(proto_->model.SerializeAsString());
  target.commit();
}

}  // namespace settrain
