#include <ATen/ATen.h>

#include "models/entries.h"
#include "models/model.h"
#include "models/named_tensors.h"
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

}  // namespace
}  // namespace settrain
