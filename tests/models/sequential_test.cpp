#include <ATen/ATen.h>
#include <fmt/format.h>

#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

std::shared_ptr<Model> sequential_network(const std::string& name, double dropout) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  const config::Config config = config::load({{model_section(registry)}, {}}, {},
                                             {"model.name=" + name, fmt::format("model.dropout={}", dropout)});
  at::manual_seed(1);
  return registry.at(name).make(config, {7, 3, 64, 64});
}

at::Tensor sequential_scores(Model& model, uint64_t seed) {
  at::manual_seed(3);
  const at::Tensor images = at::randn({2, 3, 64, 64});
  at::manual_seed(seed);
  return model.forward(images).scores;
}

TEST_CASE("AlexNet and SqueezeNet drop features in training alone, by ATen's generator") {
  const auto name = GENERATE(as<std::string>(), "alexnet", "squeezenet1_0");
  const at::NoGradGuard no_grad;
  const auto model = sequential_network(name, 0.5);
  CHECK(at::equal(sequential_scores(*model, 4), sequential_scores(*model, 4)));
  CHECK_FALSE(at::equal(sequential_scores(*model, 4), sequential_scores(*model, 5)));
  model->eval();
  CHECK(at::equal(sequential_scores(*model, 4), sequential_scores(*model, 5)));
  const auto without = sequential_network(name, 0);
  CHECK(at::equal(sequential_scores(*without, 4), sequential_scores(*model, 4)));
  const at::Tensor next = at::rand({3});  // it drew nothing
  at::manual_seed(4);
  CHECK(at::equal(next, at::rand({3})));
}

TEST_CASE("hidden layers that are not trained drop nothing") {
  const at::NoGradGuard no_grad;
  const auto model = sequential_network("alexnet", 0.5);
  model->train_only({"head"});
  model->train();
  const at::Tensor scores = sequential_scores(*model, 4);
  CHECK(at::equal(scores, sequential_scores(*model, 5)));
  model->eval();
  CHECK(at::equal(scores, sequential_scores(*model, 5)));
}

TEST_CASE("the layers of networks in a row are those with weights; hidden ones go with the head") {
  const auto alexnet = sequential_network("alexnet", 0);
  CHECK(alexnet->layers().size() == 5);
  CHECK(alexnet->layers()[1] == std::vector<std::string>{"features.3"});
  CHECK(alexnet->layers_below_head().at("features.10.bias") == 1);
  CHECK(alexnet->layers_below_head().at("classifier.1.weight") == 0);
  const auto squeezenet = sequential_network("squeezenet1_0", 0);
  CHECK(squeezenet->layers().size() == 1 + 8);
  CHECK(squeezenet->layers().back() == std::vector<std::string>{"features.12"});
}

}  // namespace
}  // namespace settrain
