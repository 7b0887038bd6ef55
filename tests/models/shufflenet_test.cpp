#include <ATen/ATen.h>

#include "models/layers.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

std::shared_ptr<Model> shufflenet() {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  const config::Config config = config::load({{model_section(registry)}, {}}, {}, {"model.name=shufflenet_v2_x1_0"});
  at::manual_seed(1);
  return registry.at("shufflenet_v2_x1_0").make(config, {7, 3, 32, 32});
}

TEST_CASE("a block of ShuffleNet keeps half of its channels as they are, and the halves alternate behind it") {
  const auto format = GENERATE(at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast);
  const auto model = shufflenet();
  model->set_channels_last(format == at::MemoryFormat::ChannelsLast);
  auto& block = *model->named_modules()["stage2.1"]->as<Layer>();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::rand({2, 116, 6, 5}).contiguous(format);
  const at::Tensor y = block.forward(x);
  REQUIRE(y.sizes() == x.sizes());
  CHECK(y.is_contiguous(format));
  CHECK(at::equal(y.slice(1, 0, std::nullopt, 2), x.slice(1, 0, 58)));
  CHECK_FALSE(at::equal(y.slice(1, 1, std::nullopt, 2), x.slice(1, 58)));
  // The other half depends on the second half of the input alone.
  at::Tensor other = x.clone();
  other.slice(1, 0, 58).fill_(9);
  CHECK(at::equal(block.forward(other).slice(1, 1, std::nullopt, 2), y.slice(1, 1, std::nullopt, 2)));
}

TEST_CASE("the first block of a stage halves the resolution with all of its channels, on both branches") {
  const auto model = shufflenet();
  auto& block = *model->named_modules()["stage3.0"]->as<Layer>();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::rand({2, 116, 7, 4});
  const at::Tensor y = block.forward(x);
  CHECK(y.sizes() == at::IntArrayRef{2, 232, 4, 2});
  for (const int64_t channel : {0, 115}) {
    CAPTURE(channel);
    at::Tensor other = x.clone();
    other.select(1, channel).add_(at::rand({2, 7, 4}));
    const at::Tensor changed = block.forward(other).ne(y).flatten(2).any(2).any(0);
    CHECK(changed.slice(0, 0, std::nullopt, 2).any().item<bool>());
    CHECK(changed.slice(0, 1, std::nullopt, 2).any().item<bool>());
  }
}

TEST_CASE("the layers of ShuffleNet are its stem and its blocks, the last with the convolution behind it") {
  const auto layers = shufflenet()->layers();
  REQUIRE(layers.size() == 1 + 4 + 8 + 4);
  CHECK(layers.front() == std::vector<std::string>{"conv1"});
  CHECK(layers[5] == std::vector<std::string>{"stage3.0"});
  CHECK(layers.back() == std::vector<std::string>{"stage4.3", "conv5"});
}

}  // namespace
}  // namespace settrain
