#include "src/onnx/trace.h"

#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <vector>

#include "models/named_tensors.h"
#include "src/onnx/operations.h"

namespace settrain {
namespace {

namespace jit = torch::jit;

/// Parameters are constants of the recorded graph, which must not ask for gradients meanwhile.
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
