#include <ATen/ATen.h>

#include "models/inverted_residual.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Words = std::vector<std::string>;

std::shared_ptr<Model> mobilenet(const std::string& name, double dropout) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  const config::Config config = config::load({{model_section(registry)}, {}}, {},
                                             {"model.name=" + name, "model.dropout=" + std::to_string(dropout)});
  at::manual_seed(1);
  return registry.at(name).make(config, {7, 3, 32, 32});
}

at::Tensor mobile_features(Model& model, uint64_t seed) {
  at::manual_seed(3);
  const at::Tensor images = at::randn({4, 3, 32, 32});
  at::manual_seed(seed);
  return model.forward(images).features;
}

TEST_CASE("channels are rounded to multiples of 8, and up where that would take off more than a tenth") {
  CHECK(channels_of_eight(32) == 32);
  CHECK(channels_of_eight(35.2) == 32);
  CHECK(channels_of_eight(36) == 40);
  CHECK(channels_of_eight(18) == 24);  // 16 would be 11 % less
  CHECK(channels_of_eight(3) == 8);
}

TEST_CASE("a hard block gates by a piecewise linear sigmoid, and adds its input where the shapes agree") {
  at::manual_seed(1);
  const InvertedShape shape{4, 8, 4, 3, 1, Activation::kHardSwish, 8};
  InvertedResidual block(InvertedNames::kBlock, {}, shape);
  block.eval();
  const at::NoGradGuard no_grad;
  const auto tensors = block.named_parameters();
  const at::Tensor x = at::randn({2, 4, 5, 5});
  const auto branch_with_gate = [&](double bias) {
    tensors["block.2.fc2.weight"].data().zero_();
    tensors["block.2.fc2.bias"].data().fill_(bias);
    return at::Tensor(block.forward(x) - x);
  };
  const at::Tensor open = branch_with_gate(3);
  CHECK(open.abs().max().item<double>() > 1e-3);
  CHECK(at::allclose(branch_with_gate(0), open / 2, 1e-4, 1e-5));
  CHECK(at::allclose(branch_with_gate(1.5), open * 0.75, 1e-4, 1e-5));
  CHECK(branch_with_gate(-3).abs().max().item<double>() < 1e-6);

  InvertedResidual halving(InvertedNames::kBlock, {}, {4, 8, 4, 3, 2, Activation::kHardSwish});
  CHECK(halving.forward(x).sizes() == at::IntArrayRef{2, 4, 3, 3});
}

TEST_CASE("a MobileNet drops features in training alone, by ATen's generator") {
  const auto name = GENERATE(as<std::string>(), "mobilenet_v2", "mobilenet_v3_small");
  const auto model = mobilenet(name, 0.5), whole = mobilenet(name, 0);
  CHECK(at::equal(mobile_features(*model, 4), mobile_features(*model, 4)));
  const at::Tensor dropped = mobile_features(*model, 5), kept = mobile_features(*whole, 5);
  const at::Tensor zero = dropped.eq(0) & kept.ne(0);
  const double share = zero.sum().item<double>() / kept.ne(0).sum().item<double>();
  CHECK(share == Approx(0.5).margin(0.05));
  CHECK(at::allclose(dropped, at::where(zero, at::zeros_like(kept), 2 * kept), 1e-4, 1e-5));
  model->eval();
  CHECK(at::equal(mobile_features(*model, 4), mobile_features(*model, 5)));
}

TEST_CASE("without dropout, a MobileNet's training draws no random numbers") {
  mobile_features(*mobilenet("mobilenet_v3_small", 0), 4);
  const at::Tensor next = at::rand({3});
  at::manual_seed(4);
  CHECK(at::equal(next, at::rand({3})));
}

TEST_CASE("the layers of MobileNets are timm's: the stem, the blocks, and a convolution behind them") {
  const auto v2 = mobilenet("mobilenet_v2", 0)->layers();
  REQUIRE(v2.size() == 1 + 17);
  CHECK(v2.front() == Words{"features.0"});
  CHECK(v2[1] == Words{"features.1"});
  CHECK(v2.back() == Words{"features.17", "features.18"});
  const auto v3 = mobilenet("mobilenet_v3_large", 0)->layers();
  REQUIRE(v3.size() == 1 + 15 + 1);
  CHECK(v3[15] == Words{"features.15"});
  CHECK(v3.back() == Words{"features.16"});
  CHECK(mobilenet("mobilenet_v3_large", 0)->layers_below_head().at("classifier.0.weight") == 0);
}

}  // namespace
}  // namespace settrain
