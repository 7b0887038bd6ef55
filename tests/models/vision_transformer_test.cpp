#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/cost.h"
#include "models/entries.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

constexpr VisionTransformerShape kSmallTransformer{16, 2, 12, 3, TensorNames::kTorchvision};

using Pooling = VisionTransformerOptions::Pooling;

TEST_CASE("attention is the softmax of the scaled products, head by head") {
  at::manual_seed(1);
  const auto model = make_vision_transformer({16, 1, 6, 2, TensorNames::kTorchvision}, {}, {}, {7, 1, 16, 16});
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
  const auto model = make_vision_transformer(kSmallTransformer, {}, {}, {7, 1, 48, 48});
  CHECK(model->named_parameters()["encoder.pos_embedding"].sizes() == at::IntArrayRef{1, 10, 12});
  const ModelOutput output = model->forward(at::randn({3, 1, 48, 48}));
  CHECK(output.features.sizes() == at::IntArrayRef{3, 12});
  CHECK(at::equal(output.scores, at::zeros({3, 7})));  // the head starts at zero
  CHECK_THROWS_WITH(model->forward(at::randn({3, 1, 32, 32})), Catch::Contains("images") &&
                                                                   Catch::Contains("[*, 1, 48, 48]") &&
                                                                   Catch::Contains("[3, 1, 32, 32]"));
  CHECK_THROWS_AS(make_vision_transformer(kSmallTransformer, {}, {}, {7, 1, 48, 47}), KeyError);
  const auto wide = make_vision_transformer(kSmallTransformer, {}, {}, {7, 1, 16, 48});
  CHECK(wide->named_parameters()["encoder.pos_embedding"].size(1) == 4);
  CHECK(wide->forward(at::randn({3, 1, 16, 48})).scores.sizes() == at::IntArrayRef{3, 7});
}

TEST_CASE("parts that do not fit together name their key") {
  const auto make = [](const VisionTransformerShape& shape, const VisionTransformerOptions& parts) {
    make_vision_transformer(shape, parts, {}, {7, 3, 32, 32});
  };
  CHECK_THROWS_WITH(make({16, 1, 10, 3}, {}), Catch::Contains("model.heads") && Catch::Contains("10"));
  VisionTransformerShape shape{16, 1, 12, 3};
  shape.class_token = false;
  CHECK_THROWS_WITH(make(shape, {}), Catch::Contains("model.pooling"));
  CHECK_THROWS_WITH(make(shape, {.pooling = Pooling::kBoth}), Catch::Contains("model.pooling"));
  CHECK_NOTHROW(make(shape, {.pooling = Pooling::kMean}));
}

TEST_CASE("registers take no part in the mean of the patches, and the class' token none but in both") {
  VisionTransformerShape shape{16, 2, 12, 3};
  shape.registers = 4;
  const auto pooled = [&](Pooling pooling, bool projection = false) {
    at::manual_seed(1);
    shape.projected = 5;
    const VisionTransformerOptions parts{.pooling = pooling, .projection = projection};
    const auto model = make_vision_transformer(shape, parts, {}, {7, 3, 32, 48});
    model->eval();
    at::manual_seed(2);
    return std::pair(model, model->forward(at::randn({2, 3, 32, 48})).features);
  };
  const auto [of_token, token] = pooled(Pooling::kToken);
  const auto [of_mean, mean] = pooled(Pooling::kMean);
  const auto [of_both, both] = pooled(Pooling::kBoth);
  CHECK(of_token->named_parameters()["pos_embed"].sizes() == at::IntArrayRef{1, 6, 12});  // of the patches alone
  CHECK_FALSE(at::allclose(token, mean));
  CHECK(at::allclose(both, at::cat({token, mean}, 1)));
  const auto [of_projected, projected] = pooled(Pooling::kToken, true);
  CHECK(at::allclose(projected, at::matmul(token, of_projected->named_parameters()["proj"]), 1e-5, 1e-6));
}

TEST_CASE("stochastic depth skips either branch of a block, of whole images, and the first block never") {
  constexpr double kSkipped = 0.4;
  constexpr int64_t kImages = 4000;
  VisionTransformerShape shape{16, 2, 6, 2};
  at::manual_seed(1);
  const auto model = make_vision_transformer(shape, {.stochastic_depth = kSkipped}, {}, {7, 3, 32, 32});
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, 5, 6}).expand({kImages, 5, 6});
  const auto distinct = [&](const char* name) {
    auto& block = *model->named_modules()[name]->as<Layer>();
    block.train();
    const at::Tensor rows = block.forward(x).flatten(1);
    return std::get<2>(at::unique_dim(rows, 0, true, false, true)).to(at::kDouble) / kImages;
  };
  CHECK(distinct("blocks.0").numel() == 1);
  const at::Tensor shares = std::get<0>(distinct("blocks.1").sort());  // both skipped, one of two, none
  REQUIRE(shares.numel() == 4);
  const std::array expected{kSkipped * kSkipped, kSkipped * (1 - kSkipped), kSkipped * (1 - kSkipped),
                            (1 - kSkipped) * (1 - kSkipped)};
  for (int64_t i = 0; i < 4; ++i) {
    CHECK(shares[i].item<double>() == Approx(expected[static_cast<size_t>(i)]).margin(0.04));
  }
}

TEST_CASE("the registered models have timm's names and shapes") {
  // scripts/record_transformer_golden.py prints these: parameters, and the start of the SHA-256 of lines of index,
  // type, shape and name.
  struct Recorded {
    const char* name;
    int64_t parameters;
    const char* digest;
  };
  const Recorded all[]{
      {"vit_tiny_patch16", 5717416, "3d9a6450b327555b"},
      {"vit_small_patch16", 22050664, "68f4f6dba3c09811"},
      {"vit_base_patch16", 86567656, "d60d7b1b1c9cd09f"},
      {"vit_large_patch16", 304326632, "b967c8a5154722d7"},
      {"vit_small_patch14_dinov2", 22441192, "38e167ce347e91e2"},
      {"vit_base_patch14_dinov2", 87348712, "e142bb2058a57b06"},
      {"vit_large_patch14_dinov2", 305392616, "9f58bef8b9b2c89d"},
      {"vit_small_patch14_reg4_dinov2", 22442344, "d38644b7a6355fbc"},
      {"vit_base_patch14_reg4_dinov2", 87351016, "9ad36cab6ad556c3"},
      {"vit_large_patch14_reg4_dinov2", 305395688, "e2473aac41207ba3"},
      {"clip_vit_b_16", 86568424, "9b6a4e29d4981c5a"},
      {"clip_vit_l_14", 304204776, "9114f0443149a87b"},
  };
  ModelRegistry registry("model");
  register_builtin_models(registry);
  const CostCounter without_storage;
  for (const Recorded& recorded : all) {
    CAPTURE(recorded.name);
    const config::Config config =
        config::load({{model_section(registry)}, {}}, {}, {std::string("model.name=") + recorded.name});
    const ModelEntry& entry = registry.at(recorded.name);
    const auto model = entry.make(config, entry.usual);
    std::string lines;
    int64_t number = 0;
    for (const auto& [name, tensor] : state_dict(*model)) {
      lines += fmt::format("{}{}\tfloat32\t[{}]\t{}", number == 0 ? "" : "\n", number,
                           fmt::join(tensor.sizes().vec(), ","), name);
      ++number;
    }
    CHECK(model->num_parameters() == recorded.parameters);
    CHECK(sha256(lines).substr(0, 16) == recorded.digest);
  }
}

TEST_CASE("a seed gives torchvision's transformer the weights that it has always given") {
  at::manual_seed(1);
  const auto model =
      make_vision_transformer({16, 1, 6, 2, TensorNames::kTorchvision}, {}, {}, {7, 1, 16, 16})->named_parameters();
  at::manual_seed(1);
  const std::string block = "encoder.layers.encoder_layer_0.";
  const auto normal = [](at::IntArrayRef sizes, double deviation) { return at::empty(sizes).normal_(0, deviation); };
  const auto uniform = [](int64_t out, int64_t in, double bound) {
    return at::empty({out, in}).uniform_(-bound, bound);
  };
  const auto glorot = [&](int64_t out, int64_t in) {
    return uniform(out, in, std::sqrt(6.0 / static_cast<double>(out + in)));
  };
  CHECK(at::equal(model["conv_proj.weight"], normal({6, 1, 16, 16}, 1.0 / 16)));
  CHECK(at::equal(model["encoder.pos_embedding"], normal({1, 2, 6}, 0.02)));
  CHECK(at::equal(model[block + "self_attention.in_proj_weight"], glorot(18, 6)));
  CHECK(at::equal(model[block + "self_attention.out_proj.weight"], uniform(6, 6, 1 / std::sqrt(6.0))));
  CHECK(at::equal(model[block + "mlp.0.bias"], normal({24}, 1e-6)));
  CHECK(at::equal(model[block + "mlp.0.weight"], glorot(24, 6)));
  CHECK(at::equal(model[block + "mlp.3.bias"], normal({6}, 1e-6)));
  CHECK(at::equal(model[block + "mlp.3.weight"], glorot(6, 24)));
}

TEST_CASE("gradients repeat to the bit") {
  const auto gradients = [] {
    at::manual_seed(1);
    const auto model =
        make_vision_transformer(kSmallTransformer, {}, {ModelOptions::Head::kNormalised, false}, {7, 3, 64, 64});
    model->forward(at::randn({4, 3, 64, 64})).scores.square().sum().backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : model->parameters()) all.push_back(parameter.grad());
    return all;
  };
  const std::vector<at::Tensor> first = gradients(), second = gradients();
  for (size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
}

// With an adapter, after all other tensors were given those of `like`, in float64.
std::shared_ptr<Model> adapted_like(Model& like, const VisionTransformerShape& shape, const AdapterOptions& adapter) {
  auto model = make_vision_transformer(shape, {.adapter = adapter}, {}, {7, 1, 32, 32});
  model->to(at::kDouble);
  const at::NoGradGuard no_grad;
  const auto targets = model->named_parameters();
  for (const auto& parameter : like.named_parameters()) targets[parameter.key()].copy_(parameter.value());
  return model;
}

std::shared_ptr<Model> plain_transformer(const VisionTransformerShape& shape) {
  at::manual_seed(1);
  auto model = make_vision_transformer(shape, {}, {}, {7, 1, 32, 32});
  model->to(at::kDouble);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : model->parameters()) parameter.normal_(0, 0.3);
  return model;
}

constexpr VisionTransformerShape kTimmTransformer{16, 2, 12, 3, TensorNames::kTimm};

TEST_CASE("an adapter begins by changing nothing, and is all that is trained with the head") {
  for (const VisionTransformerShape& shape : {kSmallTransformer, kTimmTransformer}) {
    for (const auto kind : {AdapterOptions::kLora, AdapterOptions::kAdaptFormer}) {
      const auto plain = plain_transformer(shape);
      const auto model = adapted_like(*plain, shape, {.kind = kind, .rank = 3});
      const at::Tensor images = at::randn({2, 1, 32, 32}, at::kDouble);
      CHECK(at::equal(model->forward(images).scores, plain->forward(images).scores));

      const auto own = model->parameters_of("adapter");
      CHECK(own.size() == model->parameters().size() - plain->parameters().size());
      const int64_t of_lora = 3 * (12 + 36) + 3 * (12 + 12), of_mlp = 2 * 3 * 12 + 3 + 12;
      CHECK(model->num_parameters() - plain->num_parameters() ==
            2 * (kind == AdapterOptions::kLora ? of_lora : of_mlp));
      for (const std::string& name : own) CHECK(model->layers_below_head().at(name) > 0);
      CHECK(plain->parameters_of("adapter").empty());
      const std::vector<std::string> names = model->names_of_parts(), plain_names = plain->names_of_parts();
      CHECK(std::ranges::count(names, std::string("adapter")) == 1);
      CHECK(std::ranges::count(plain_names, std::string("adapter")) == 0);

      model->train_only({"adapter", "head"});
      model->forward(images).scores.square().sum().backward();
      for (const auto& parameter : model->named_parameters()) {
        CAPTURE(parameter.key());
        CHECK(parameter.value().grad().defined() ==
              (own.contains(parameter.key()) || parameter.key().find("head") != std::string::npos));
      }
      CHECK(model->num_trained_parameters() == model->num_parameters() - plain->num_parameters() + 12 * 7 + 7);
    }
  }
}

TEST_CASE("an adapter answers in every form") {
  const c10::InferenceMode inference;
  for (const auto kind : {AdapterOptions::kLora, AdapterOptions::kAdaptFormer}) {
    CAPTURE(static_cast<int>(kind));
    const auto model = make_vision_transformer(kTimmTransformer, {.adapter = {.kind = kind, .rank = 3, .alpha = 6}}, {},
                                               {7, 1, 32, 32});
    at::manual_seed(6);
    for (at::Tensor& parameter : model->parameters()) parameter.normal_(0, 0.1);
    model->eval();
    const at::Tensor images = at::randn({2, 1, 32, 32}), exact = model->forward(images).scores;
    model->prepare(InferenceForm::kFast);
    CHECK(test::relative_error(model->forward(images).scores, exact) <= network_tolerance(at::kFloat));
    model->prepare(InferenceForm::kBf16);
    CHECK(test::relative_error(model->forward(images).scores, exact) <= 0.1);
  }
}

TEST_CASE("LoRA adds alpha / rank times its product to the weights") {
  for (const VisionTransformerShape& shape : {kSmallTransformer, kTimmTransformer}) {
    const auto plain = plain_transformer(shape);
    const auto model = adapted_like(*plain, shape, {.kind = AdapterOptions::kLora, .rank = 3, .alpha = 6});
    const at::NoGradGuard no_grad;
    const bool is_timm = shape.names == TensorNames::kTimm;
    const auto own = model->named_parameters(), target = plain->named_parameters();
    for (const int b : {0, 1}) {
      const std::string attention = is_timm ? fmt::format("blocks.{}.attn.", b)
                                            : fmt::format("encoder.layers.encoder_layer_{}.self_attention.", b);
      for (const auto& [adapter, weight] : std::vector<std::pair<std::string, std::string>>{
               {is_timm ? "qkv" : "in_proj", is_timm ? "qkv.weight" : "in_proj_weight"},
               {is_timm ? "proj" : "out_proj", is_timm ? "proj.weight" : "out_proj.weight"}}) {
        const at::Tensor up = own[attention + "lora." + adapter + ".up"].normal_();
        target[attention + weight].add_(2 * up.matmul(own[attention + "lora." + adapter + ".down"]));
      }
    }
    const at::Tensor images = at::randn({2, 1, 32, 32}, at::kDouble);
    CHECK(at::allclose(model->forward(images).scores, plain->forward(images).scores, 1e-10, 1e-10));
  }
  const auto narrow = make_vision_transformer(
      kTimmTransformer, {.adapter = {.kind = AdapterOptions::kLora, .layers = {"qkv"}}}, {}, {7, 1, 32, 32});
  CHECK(narrow->parameters_of("adapter").size() == 4);
}

TEST_CASE("AdaptFormer's MLP lies beside the block's, behind the same norm") {
  VisionTransformerShape shape = kTimmTransformer;
  shape.layer_scale = 0.5;
  const auto plain = plain_transformer(shape);
  const auto model = adapted_like(*plain, shape, {.kind = AdapterOptions::kAdaptFormer, .rank = 5, .scale = 0.2});
  const at::NoGradGuard no_grad;
  const auto modules = model->named_modules();
  const auto parameters = modules["blocks.1.adaptformer"]->named_parameters();
  for (const auto& parameter : parameters) parameter.value().normal_();
  const auto layer = [&](const std::string& name) { return modules["blocks.1" + name]->as<Layer>(); };
  const at::Tensor x = at::randn({2, 5, 12}, at::kDouble);
  const at::Tensor y = x + layer(".ls1")->forward(layer(".attn")->forward(layer(".norm1")->forward(x)));
  const at::Tensor normed = layer(".norm2")->forward(y);
  const at::Tensor mlp = layer(".mlp.fc2")->forward(at::gelu(layer(".mlp.fc1")->forward(normed)));
  const at::Tensor hidden = at::relu(at::linear(normed, parameters["down.weight"], parameters["down.bias"]));
  const at::Tensor expected =
      y + layer(".ls2")->forward(mlp) + 0.2 * at::linear(hidden, parameters["up.weight"], parameters["up.bias"]);
  CHECK(at::allclose(layer("")->forward(x), expected, 1e-12, 1e-12));
}

}  // namespace
}  // namespace settrain
