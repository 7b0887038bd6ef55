#include <ATen/ATen.h>

#include "models/layers.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

std::shared_ptr<Model> efficientnet(const std::string& name, double stochastic_depth, double dropout) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  const config::Config config =
      config::load({{model_section(registry)}, {}}, {},
                   {"model.name=" + name, "model.stochastic_depth=" + std::to_string(stochastic_depth),
                    "model.dropout=" + std::to_string(dropout)});
  at::manual_seed(1);
  return registry.at(name).make(config, {7, 3, 32, 32});
}

Layer& layer_of(Model& model, const std::string& name) {
  return *model.named_modules()[name]->as<Layer>();
}

at::Tensor efficient_scores(Model& model, uint64_t seed) {
  at::manual_seed(3);
  const at::Tensor images = at::randn({4, 3, 32, 32});
  at::manual_seed(seed);
  return model.forward(images).scores;
}

TEST_CASE("EfficientNet-Lite0 pads as TensorFlow: nothing, then one pixel, or one on both sides") {
  const auto model = efficientnet("efficientnet_lite0", 0, 0);
  const at::NoGradGuard no_grad;
  auto& stem = layer_of(*model, "_conv_stem");
  for (at::Tensor& weight : stem.parameters()) weight.fill_(1);
  // How many pixels of the image each output pixel sees, of three channels.
  const auto seen = [&](int64_t height, int64_t width) {
    return (stem.forward(at::ones({1, 3, height, width})) / 3).select(1, 0).squeeze(0);
  };
  CHECK(at::equal(seen(4, 4), at::tensor({9.0F, 6.0F, 6.0F, 4.0F}).view({2, 2})));
  CHECK(at::equal(seen(3, 3), at::full({2, 2}, 4.0F)));
  CHECK(at::equal(seen(4, 3), at::tensor({6.0F, 6.0F, 4.0F, 4.0F}).view({2, 2})));
  CHECK(at::equal(seen(1, 1), at::ones({1, 1})));
}

TEST_CASE("an EfficientNet's blocks are skipped the more often the later they are, and never without a shortcut") {
  constexpr double kRate = 0.8;
  constexpr int64_t kImages = 4000;
  // Place of the block among all of them, its input's channels.
  const auto [name, path, place, blocks, channels] = GENERATE(
      std::tuple<std::string, std::string, double, double, int64_t>{"efficientnet_b0", "features.2.1", 2, 16, 24},
      std::tuple<std::string, std::string, double, double, int64_t>{"efficientnet_b0", "features.6.3", 14, 16, 192},
      std::tuple<std::string, std::string, double, double, int64_t>{"efficientnet_v2_s", "features.1.1", 1, 40, 24},
      std::tuple<std::string, std::string, double, double, int64_t>{"efficientnet_v2_s", "features.1.0", 0, 40, 24},
      std::tuple<std::string, std::string, double, double, int64_t>{"efficientnet_lite0", "_blocks.4", 4, 16, 40},
      std::tuple<std::string, std::string, double, double, int64_t>{"efficientnet_lite0", "_blocks.5", 0, 16, 40});
  CAPTURE(name, path);
  const auto model = efficientnet(name, kRate, 0);
  const at::NoGradGuard no_grad;
  auto& block = layer_of(*model, path);
  const at::Tensor x = at::rand({kImages, channels, 1, 1});
  const at::Tensor skipped = block.forward(x).sizes() == x.sizes() ? block.forward(x).eq(x).flatten(1).all(1)
                                                                   : at::zeros({kImages}, at::kBool);
  const double expected = kRate * place / blocks, share = skipped.to(at::kDouble).mean().item<double>();
  CHECK(share == Approx(expected).margin(4 * std::sqrt(expected * (1 - expected) / kImages)));
}

TEST_CASE("an EfficientNet drops features in training alone, by ATen's generator") {
  const auto name = GENERATE(as<std::string>(), "efficientnet_b0", "efficientnet_lite0");
  const auto model = efficientnet(name, 0, 0.5);
  CHECK(at::equal(efficient_scores(*model, 4), efficient_scores(*model, 4)));
  CHECK_FALSE(at::equal(efficient_scores(*model, 4), efficient_scores(*model, 5)));
  // ReLU6 makes zeros of its own.
  const at::Tensor features = model->forward(at::randn({4, 3, 32, 32})).features;
  const double zeros = features.eq(0).to(at::kDouble).mean().item<double>();
  CHECK(zeros == Approx(name == "efficientnet_b0" ? 0.5 : 0.75).margin(0.1));
  model->eval();
  CHECK(at::equal(efficient_scores(*model, 4), efficient_scores(*model, 5)));
}

TEST_CASE("a larger EfficientNet drops more features, as published") {
  const auto usual = [](const std::string& name) {
    ModelRegistry registry("model");
    register_builtin_models(registry);
    return config::load({{model_section(registry)}, {}}, {}, {"model.name=" + name}).get<double>("model.dropout");
  };
  CHECK(usual("efficientnet_b0") == 0.2);
  CHECK(usual("efficientnet_b1") == 0.2);
  CHECK(usual("efficientnet_b2") == 0.3);
  CHECK(usual("efficientnet_b3") == 0.3);
  CHECK(usual("efficientnet_b4") == 0.4);
  CHECK(usual("efficientnet_v2_s") == 0.2);
}

TEST_CASE("without dropout and stochastic depth, an EfficientNet's training draws no random numbers") {
  efficient_scores(*efficientnet("efficientnet_b0", 0, 0), 4);
  const at::Tensor next = at::rand({3});
  at::manual_seed(4);
  CHECK(at::equal(next, at::rand({3})));
}

TEST_CASE("the layers of EfficientNets are timm's: the stem and the blocks, the last with the convolution behind it") {
  const auto lite = efficientnet("efficientnet_lite0", 0, 0)->layers();
  REQUIRE(lite.size() == 1 + 16);
  CHECK(lite.front() == std::vector<std::string>{"_conv_stem", "_bn0"});
  CHECK(lite[1] == std::vector<std::string>{"_blocks.0"});
  CHECK(lite.back() == std::vector<std::string>{"_blocks.15", "_conv_head", "_bn1"});
  const auto b0 = efficientnet("efficientnet_b0", 0, 0)->layers();
  REQUIRE(b0.size() == 1 + 16);
  CHECK(b0[2] == std::vector<std::string>{"features.2.0"});
  CHECK(b0.back() == std::vector<std::string>{"features.7.0", "features.8"});
}

}  // namespace
}  // namespace settrain
