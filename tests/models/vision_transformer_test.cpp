#include <ATen/ATen.h>

#include <cmath>

#include "models/entries.h"
#include "models/layers.h"
#include "models/model.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr VisionTransformerShape kSmallTransformer{16, 2, 12, 3};

TEST_CASE("attention is the softmax of the scaled products, head by head") {
  at::manual_seed(1);
  const auto model = make_vision_transformer({16, 1, 6, 2}, {}, {7, 1, 16, 16});
  auto& attention = *model->named_modules()["encoder.layers.encoder_layer_0.self_attention"]->as<Layer>();
  attention.to(at::kDouble);
  const auto parameters = attention.named_parameters();
  parameters["in_proj_bias"].data().normal_();
  parameters["out_proj.bias"].data().normal_();
  const at::Tensor x = at::randn({2, 5, 6}, at::kDouble);
  const at::Tensor packed = at::linear(x, parameters["in_proj_weight"], parameters["in_proj_bias"]);
  std::vector<at::Tensor> heads;
  for (int64_t h = 0; h < 2; ++h) {
    const auto part = [&](int64_t which) { return packed.slice(2, 6 * which + 3 * h, 6 * which + 3 * h + 3); };
    const at::Tensor weights = at::softmax(part(0).matmul(part(1).transpose(1, 2)) / std::sqrt(3.0), -1);
    heads.push_back(weights.matmul(part(2)));
  }
  const at::Tensor expected = at::linear(at::cat(heads, 2), parameters["out_proj.weight"], parameters["out_proj.bias"]);
  CHECK(at::allclose(attention.forward(x), expected, 1e-12, 1e-12));
}

TEST_CASE("a place's embedding is learnt for every patch, and other images are refused") {
  const auto model = make_vision_transformer(kSmallTransformer, {}, {7, 1, 48, 48});
  CHECK(model->named_parameters()["encoder.pos_embedding"].sizes() == at::IntArrayRef{1, 10, 12});
  const ModelOutput output = model->forward(at::randn({3, 1, 48, 48}));
  CHECK(output.features.sizes() == at::IntArrayRef{3, 12});
  CHECK(at::equal(output.scores, at::zeros({3, 7})));  // the head starts at zero
  CHECK_THROWS_WITH(model->forward(at::randn({3, 1, 32, 32})), Catch::Contains("images") &&
                                                                   Catch::Contains("[*, 1, 48, 48]") &&
                                                                   Catch::Contains("[3, 1, 32, 32]"));
  CHECK_THROWS_AS(make_vision_transformer(kSmallTransformer, {}, {7, 1, 48, 47}), KeyError);
}

TEST_CASE("gradients repeat to the bit") {
  const auto gradients = [] {
    at::manual_seed(1);
    const auto model =
        make_vision_transformer(kSmallTransformer, {ModelOptions::Head::kNormalised, false}, {7, 3, 64, 64});
    model->forward(at::randn({4, 3, 64, 64})).scores.square().sum().backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : model->parameters()) all.push_back(parameter.grad());
    return all;
  };
  const std::vector<at::Tensor> first = gradients(), second = gradients();
  for (size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
}

}  // namespace
}  // namespace settrain
