// A trained network that answers in a form of run.inference, for settrain.load().
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <memory>
#include <string>

#include "models/inference_form.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "models/registry.h"
#include "python/ops/value_errors.h"
#include "src/config/load.h"

namespace settrain {
namespace {

const ModelRegistry& model_registry() {
  static const ModelRegistry registry = [] {
    ModelRegistry models("model");
    register_builtin_models(models);
    return models;
  }();
  return registry;
}

using Weights = c10::Dict<std::string, at::Tensor>;

std::shared_ptr<Model> network_of(const std::string& settings, const ModelContext& context, const Weights& weights) {
  const config::Schema schema{{model_section(model_registry())}, {}};
  const config::Config config = config::load_resolved(schema, settings, "the model's settings", {});
  auto model = model_registry().at(config.get<std::string>("model.name")).make(config, context);
  const c10::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state_dict(*model)) {
    const auto found = weights.find(name);
    if (found == weights.end() || found->value().sizes() != tensor.sizes()) {
      throw ShapeError(fmt::format("{}: its weights are missing, or have another shape", name));
    }
    tensor.copy_(found->value());
  }
  model->set_channels_last(true);
  return model;
}

class Network : public torch::CustomClassHolder {
 public:
  /// `settings`: the section `model` of a config, YAML. `form`: "fast" or "bf16".
  Network(const std::string& settings, int64_t classes, int64_t channels, int64_t height, int64_t width,
          const Weights& weights, const std::string& form)
      : model_(with_value_errors([&] {
          return network_of(settings, {classes, channels, height, width}, weights);
        })) {
    const c10::InferenceMode inference;
    const auto wanted = form == "fast" ? InferenceForm::kFast : InferenceForm::kBf16;
    problem_ = wanted == InferenceForm::kBf16 && bf16_is_emulated(at::kCPU)
                   ? "the processor has no instructions for bfloat16"
                   : prepare_checked(*model_, wanted, {classes, channels, height, width}, at::kCPU);
  }

  /// Why the network is in the exact form; empty where it is not.
  std::string problem() const { return problem_; }

  at::Tensor scores(const at::Tensor& images) const {
    const at::Tensor computed = [&] {
      const c10::InferenceMode inference;
      const auto format = images.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
      return with_value_errors([&] { return model_->forward(images.contiguous(format)).prediction(); });
    }();
    return computed.clone();  // a tensor of inference mode could not be saved for a backward pass
  }

 private:
  std::shared_ptr<Model> model_;
  std::string problem_;
};

TORCH_LIBRARY_FRAGMENT(settrain, library) {
  library.class_<Network>("Network")
      .def(torch::init<const std::string&, int64_t, int64_t, int64_t, int64_t, const Weights&, const std::string&>())
      .def("problem", &Network::problem)
      .def("scores", &Network::scores);
}

}  // namespace
}  // namespace settrain
