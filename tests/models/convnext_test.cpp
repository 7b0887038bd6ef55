#include <ATen/ATen.h>

#include "models/entries.h"
#include "models/layers.h"
#include "models/model.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

// With branches that matter, which at first have a weight of 1e-6.
std::shared_ptr<Model> small_convnext(double stochastic_depth) {
  at::manual_seed(1);
  auto model = make_convnext({{1, 2, 1, 2}, {4, 6, 8, 10}}, stochastic_depth, {}, {7, 3, 32, 32});
  for (const auto& item : model->named_parameters()) {
    if (item.key().ends_with("layer_scale")) item.value().data().fill_(1);
  }
  return model;
}

at::Tensor scores_of(Model& model, uint64_t seed) {
  at::manual_seed(3);
  const at::Tensor images = at::randn({6, 3, 32, 32});
  at::manual_seed(seed);
  return model.forward(images).scores;
}

TEST_CASE("stochastic depth skips whole images as often as asked for, and keeps the mean") {
  constexpr double kSkipped = 0.3;
  constexpr int64_t kImages = 20000;
  const auto model = small_convnext(kSkipped);
  auto& last_block = *model->named_modules()["features.7.1"]->as<Layer>();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, 10, 1, 3}).expand({kImages, 10, 1, 3});
  const auto branch = [&](bool training) {
    last_block.train(training);
    return (last_block.forward(x) - x).flatten(1);
  };
  const at::Tensor whole = branch(false), skipped = branch(true);
  const at::Tensor kept = skipped.ne(0).any(1);
  const at::Tensor rows = kept.nonzero().squeeze(1);
  CHECK(at::allclose(skipped.index_select(0, rows), whole.index_select(0, rows) / (1 - kSkipped), 1e-3, 1e-4));
  const double share = 1 - kept.to(at::kDouble).mean().item<double>();
  CHECK(share == Approx(kSkipped).margin(4 * std::sqrt(kSkipped * (1 - kSkipped) / kImages)));
}

TEST_CASE("images skip branches in training alone, by ATen's generator") {
  const auto model = small_convnext(0.5);
  CHECK(at::equal(scores_of(*model, 4), scores_of(*model, 4)));
  CHECK_FALSE(at::equal(scores_of(*model, 4), scores_of(*model, 5)));
  model->eval();
  CHECK(at::equal(scores_of(*model, 4), scores_of(*model, 5)));
  CHECK(at::equal(scores_of(*small_convnext(0), 4), scores_of(*model, 4)));  // in training, too
}

TEST_CASE("without stochastic depth, training draws no random numbers") {
  scores_of(*small_convnext(0), 4);
  const at::Tensor next = at::rand({3});
  at::manual_seed(4);
  CHECK(at::equal(next, at::rand({3})));
}

TEST_CASE("activations that are computed again skip the same branches, and later numbers stay as they were") {
  const auto kept = small_convnext(0.5), again = small_convnext(0.5);
  again->recompute_activations();
  std::vector<at::Tensor> later;
  for (const auto& model : {kept, again}) {
    scores_of(*model, 4).square().sum().backward();
    later.push_back(at::rand({3}));
  }
  CHECK(at::equal(later[0], later[1]));
  for (const auto& item : kept->named_parameters()) {
    CAPTURE(item.key());
    CHECK(at::equal(again->named_parameters()[item.key()].grad(), item.value().grad()));
  }
}

}  // namespace
}  // namespace settrain
