// Tests of builtin_test.cpp on a GPU, whose backward pass has a thread of its own.
#include <ATen/ATen.h>

#include "models/autocast.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

std::shared_ptr<Model> build_for_gpu(const std::string& name) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  at::manual_seed(1);
  const config::Config config = config::load({{model_section(registry)}, {}}, {}, {"model.name=" + name});
  auto model = registry.at(name).make(config, {7, 3, 32, 32});
  model->to(at::kCUDA);
  return model;
}

TEST_CASE("activations that are computed again, in bf16 and with channels last too, change nothing", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  const bool bf16 = GENERATE(false, true);
  for (const char* name :
       {"resnet8", "densenet40_12", "resnet50", "densenet121", "convnext_tiny", "vit_b_16", "vit_small_patch16",
        "efficientnet_b0", "efficientnet_lite0", "mobilenet_v3_small", "shufflenet_v2_x1_0"}) {
    CAPTURE(name, bf16);
    const auto kept = build_for_gpu(name), again = build_for_gpu(name);
    again->recompute_activations();
    for (const auto& model : {kept, again}) {
      model->set_channels_last(bf16);
      at::manual_seed(2);
      const at::Tensor images = at::randn({4, 3, 32, 32}).to(at::kCUDA);
      const Autocast autocast(at::kCUDA, bf16);
      const ModelOutput output = model->forward(images);
      CHECK(output.scores.scalar_type() == at::kFloat);
      output.scores.square().sum().backward();
    }
    for (size_t i = 0; i < kept->parameters().size(); ++i) {
      const at::Tensor expected = kept->parameters()[i].grad(), got = again->parameters()[i].grad();
      CHECK(at::allclose(got, expected, 1e-3, 1e-5 * expected.abs().max().item<double>()));
    }
    const NamedTensors expected = state_dict(*kept), got = state_dict(*again);
    for (size_t i = 0; i < expected.size(); ++i) CHECK(at::equal(got[i].second, expected[i].second));
  }
}

}  // namespace
}  // namespace settrain
