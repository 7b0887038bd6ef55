#include "models/heads.h"

#include <ATen/ATen.h>

#include "models/named_tensors.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

struct Owner : torch::nn::Module {};

std::vector<std::string> names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(module)) names.push_back(name);
  return names;
}

TEST_CASE("a normalised head gives cosines that do not depend on the features' length") {
  at::manual_seed(1);
  Owner model;
  const Heads head(model, "fc", {ModelOptions::Head::kNormalised}, 5, 3);
  const at::Tensor features = at::randn({4, 5});
  const at::Tensor scores = head(features).scores;
  CHECK(scores.abs().max().item<double>() <= 1 + 1e-6);
  CHECK(at::allclose(scores, head(features * 7).scores, 1e-5, 1e-6));
  CHECK(at::allclose(model.parameters()[0].norm(2, 0), at::ones({3})));
  CHECK(at::isfinite(head(at::zeros({1, 5})).scores).all().item<bool>());
}

TEST_CASE("a scaled head trains a factor for each class, and nothing else") {
  Owner model;
  const Heads heads(model, "fc", {ModelOptions::Head::kScaled, true}, 5, 3);
  CHECK(names(model) == std::vector<std::string>{"fc.weight", "fc.bias", "fc.factor"});
  const at::Tensor features = at::randn({4, 5});
  const NamedTensors tensors = state_dict(model);
  const at::Tensor linear = at::linear(features, tensors[0].second, tensors[1].second);
  CHECK(at::equal(heads(features).scores, linear));
  {
    const at::NoGradGuard no_grad;
    tensors[2].second.copy_(at::tensor({1.0F, 2.0F, 3.0F}));
  }
  const ModelOutput output = heads(features);
  CHECK(at::allclose(output.scores, linear * at::tensor({1.0F, 2.0F, 3.0F})));
  output.scores.sum().backward();
  CHECK_FALSE(tensors[0].second.requires_grad());
  CHECK_FALSE(tensors[1].second.requires_grad());
  CHECK(at::allclose(tensors[2].second.grad(), linear.sum(0)));
}

TEST_CASE("two heads score the same features with weights of their own") {
  at::manual_seed(1);
  Owner model;
  const Heads heads(model, "fc", {ModelOptions::Head::kTwoHead, true}, 5, 3);
  CHECK(names(model) == std::vector<std::string>{"fc.weight", "fc.bias", "fc_multi.weight", "fc_multi.bias"});
  const at::Tensor features = at::randn({4, 5}).requires_grad_(true);
  const ModelOutput output = heads(features);
  const NamedTensors weights = state_dict(model);
  CHECK(at::equal(output.scores, at::linear(features, weights[0].second, weights[1].second)));
  CHECK(at::equal(output.scores_multi, at::linear(features, weights[2].second, weights[3].second)));
  CHECK(output.features.is_same(features));
  CHECK(output.prediction().is_same(output.scores_multi));
  output.scores_multi.sum().backward();
  CHECK_FALSE(weights[0].second.grad().defined());
  CHECK(weights[2].second.grad().defined());
}

TEST_CASE("one head leaves no multi-label scores, and a bias may be left out or start at zero") {
  Owner with, without;
  const Heads head(with, "classifier", {ModelOptions::Head::kLinear, true}, 5, 3, FirstHead::kZeroBias);
  const ModelOutput output = head(at::zeros({1, 5}));
  CHECK_FALSE(output.scores_multi.defined());
  CHECK(output.prediction().is_same(output.scores));
  CHECK((*with.named_parameters().find("classifier.bias") == 0).all().item<bool>());
  Heads(without, "fc", {ModelOptions::Head::kLinear, false}, 5, 3);
  CHECK(names(without) == std::vector<std::string>{"fc.weight"});
}

ModelOptions options_of(ModelOptions::Head kind) {
  ModelOptions options;
  options.head = kind;
  return options;
}

TEST_CASE("heads of pixels: the means of what is above 0 at each, where a normalised head sees the mean features") {
  at::manual_seed(1);
  const at::Tensor pixels = at::randn({4, 5, 2, 3}, at::kDouble), means = pixels.mean(at::IntArrayRef{2, 3});
  const auto make = [&](torch::nn::Module& owner, ModelOptions::Head kind) {
    Heads heads(owner, "1", options_of(kind), 5, 3, FirstHead::kUniform, HeadInput::kPixels);
    owner.to(at::kDouble);
    return heads;
  };
  const auto expected = [&](const at::Tensor& weight, const at::Tensor& bias) {
    REQUIRE(weight.sizes() == at::IntArrayRef{3, 5, 1, 1});
    const at::Tensor at_each = at::linear(pixels.permute({0, 2, 3, 1}), weight.view({3, 5}), bias);
    return at_each.clamp_min(0).mean(at::IntArrayRef{1, 2});
  };
  Owner linear, normalised, two, scaled;
  const Heads linear_head = make(linear, ModelOptions::Head::kLinear);
  const ModelOutput output = linear_head(pixels);
  CHECK(at::allclose(output.features, means));
  const NamedTensors of_linear = state_dict(linear);
  CHECK(at::allclose(output.scores, expected(of_linear[0].second, of_linear[1].second)));
  CHECK_THROWS_AS(linear_head(means), ShapeError);
  CHECK((output.scores != at::linear(means, of_linear[0].second.view({3, 5}), of_linear[1].second)).any().item<bool>());

  const Heads normalised_head = make(normalised, ModelOptions::Head::kNormalised);
  const ModelOutput cosines = normalised_head(pixels);
  CHECK(at::equal(normalised_head(cosines.features).scores, cosines.scores));
  CHECK(state_dict(normalised)[0].second.sizes() == at::IntArrayRef{5, 3});
  CHECK(at::allclose(cosines.features, means));
  CHECK(cosines.scores.lt(0).any().item<bool>());

  const ModelOutput both = make(two, ModelOptions::Head::kTwoHead)(pixels);
  const NamedTensors of_two = state_dict(two);
  CHECK(at::allclose(both.scores, expected(of_two[0].second, of_two[1].second)));
  CHECK(at::allclose(both.scores_multi, expected(of_two[2].second, of_two[3].second)));

  const Heads with_factors = make(scaled, ModelOptions::Head::kScaled);
  const NamedTensors of_scaled = state_dict(scaled);
  const at::Tensor factors = at::tensor({2.0, -1.0, 0.5}, at::kDouble);
  {
    const at::NoGradGuard no_grad;
    of_scaled[2].second.copy_(factors);
  }
  const at::Tensor folded = expected(of_scaled[0].second * factors.view({3, 1, 1, 1}), of_scaled[1].second * factors);
  CHECK(at::allclose(with_factors(pixels).scores, folded));
}

}  // namespace
}  // namespace settrain
