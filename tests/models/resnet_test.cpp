#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cmath>

#include "models/entries.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr ModelContext kResnetInput{100, 3, 32, 32};

TEST_CASE("resnet20 has the paper's number of parameters for ten classes") {
  const auto model = make_small_resnet(20, 16, {}, {10, 3, 32, 32});
  int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.numel();
  // He et al., table 6 prints 0.27 M.
  CHECK(parameters == 269722);
}

TEST_CASE("state_dict lists a module's parameters before its buffers, and then its children, as Python does") {
  const auto model = make_small_resnet(8, 16, {}, kResnetInput);
  const NamedTensors tensors = state_dict(*model);
  REQUIRE(tensors.size() == 6 + 3 * 12 + 2);
  CHECK(tensors[0].first == "conv1.weight");
  CHECK(tensors[1].first == "bn1.weight");
  CHECK(tensors[3].first == "bn1.running_mean");
  CHECK(tensors[5].first == "bn1.num_batches_tracked");
  CHECK(tensors[6].first == "layer1.0.conv1.weight");
  CHECK(tensors.back().first == "fc.bias");
}

TEST_CASE("scores have a row an image, at any even resolution") {
  const auto model = make_small_resnet(8, 4, {}, {7, 1, 28, 28});
  CHECK(model->forward(at::randn({3, 1, 28, 28})).scores.sizes() == at::IntArrayRef{3, 7});
  CHECK(model->forward(at::randn({2, 1, 64, 64})).scores.sizes() == at::IntArrayRef{2, 7});
}

TEST_CASE("images of another channel count are refused by name") {
  const auto model = make_small_resnet(8, 4, {}, kResnetInput);
  CHECK_THROWS_WITH(model->forward(at::randn({2, 1, 32, 32})),
                    Catch::Contains("images") && Catch::Contains("[*, 3, *, *]") && Catch::Contains("[2, 1, 32, 32]"));
}

TEST_CASE("initial weights have the standard deviation of the paper's authors") {
  at::manual_seed(1);
  const auto model = make_small_resnet(20, 16, {}, kResnetInput);
  const at::Tensor weight = *model->named_parameters().find("layer3.1.conv2.weight");
  const double expected = std::sqrt(2.0 / (64 * 9));
  // 36,864 normals: the relative standard error of their deviation is 1 / sqrt(2 * 36864) = 0.0037.
  CHECK(weight.std().item<double>() == Approx(expected).epsilon(4 * 0.0037));
  CHECK(std::abs(weight.mean().item<double>()) < 4 * expected / std::sqrt(36864.0));
  CHECK(model->named_parameters().find("fc.weight")->abs().max().item<double>() <= 1.0 / 8);
}

std::shared_ptr<Model> with_random_depth(const std::string& name, double stochastic_depth) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  const config::Config config =
      config::load({{model_section(registry)}, {}}, {},
                   {"model.name=" + name, fmt::format("model.stochastic_depth={}", stochastic_depth)});
  at::manual_seed(1);
  return registry.at(name).make(config, {7, 3, 64, 64});
}

TEST_CASE("stochastic depth skips a block's branch, never the first one's, and keeps the mean") {
  constexpr double kSkipped = 0.3;
  constexpr int64_t kImages = 400;
  struct LastBlock {
    std::string model, name;
    int64_t channels;
  };
  for (const LastBlock& last :
       {LastBlock{"resnet20", "layer3.2", 64}, {"resnet18", "layer4.1", 512}, {"resnet50", "layer4.2", 2048}}) {
    CAPTURE(last.model);
    const auto whole = with_random_depth(last.model, 0), skipping = with_random_depth(last.model, kSkipped);
    const at::NoGradGuard no_grad;
    // So far above zero that the rectifier at the end lets all pass: what is left of the shortcut is the branch.
    const at::Tensor x = at::randn({kImages, last.channels, 1, 1}) + 100;
    const auto branch = [&](Model& model, bool training) {
      model.train(training);
      return (model.named_modules()[last.name]->as<Layer>()->forward(x) - x).flatten(1);
    };
    const at::Tensor full = branch(*whole, true), random = branch(*skipping, true);
    const at::Tensor kept = random.ne(0).any(1), rows = kept.nonzero().squeeze(1);
    CHECK(full.ne(0).any(1).all().item<bool>());
    CHECK(at::allclose(random.index_select(0, rows), full.index_select(0, rows) / (1 - kSkipped), 1e-3, 1e-3));
    const double share = 1 - kept.to(at::kDouble).mean().item<double>();
    CHECK(share == Approx(kSkipped).margin(4 * std::sqrt(kSkipped * (1 - kSkipped) / kImages)));
    CHECK(at::equal(branch(*skipping, false), branch(*skipping, false)));

    const at::Tensor images = at::randn({8, whole->named_parameters()["layer1.0.conv1.weight"].size(1), 4, 4});
    const auto first = [&](Model& model) {
      model.train();
      return model.named_modules()["layer1.0"]->as<Layer>()->forward(images);
    };
    CHECK(at::equal(first(*skipping), first(*whole)));
  }
}

TEST_CASE("without stochastic depth, training a ResNet draws no random numbers") {
  const auto model = with_random_depth("resnet20", 0);
  const at::Tensor images = at::randn({2, 3, 16, 16});
  at::manual_seed(4);
  model->forward(images);
  const at::Tensor next = at::rand({3});
  at::manual_seed(4);
  CHECK(at::equal(next, at::rand({3})));
}

}  // namespace
}  // namespace settrain
