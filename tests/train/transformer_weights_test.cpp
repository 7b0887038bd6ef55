#include "src/train/transformer_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <regex>

#include "models/cost.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/checkpoint/tensor_file.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/formats/model_card.h"
#include "src/train/pretrained.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

const ModelRegistry& all_models() {
  static const ModelRegistry registry = [] {
    ModelRegistry all("model");
    register_builtin_models(all);
    return all;
  }();
  return registry;
}

// A small transformer, which files of other names are made of and loaded into.
class SmallTransformer {
 public:
  explicit SmallTransformer(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
    for (const char* setting : {"model.name=vit", "model.patch=4", "model.width=12", "model.depth=3", "model.heads=3"})
      settings_.insert(settings_.begin(), setting);
  }

  std::shared_ptr<Model> draw(int64_t seed, int64_t height = 16, int64_t width = 16) const {
    at::manual_seed(seed);
    auto model = all_models().at("vit").make(config(), {5, 3, height, width});
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters()) parameter.normal_(0, 0.3);
    return model;
  }

  TensorMap tensors(int64_t seed = 1, int64_t height = 16, int64_t width = 16) const {
    TensorMap tensors;
    for (const auto& [name, tensor] : state_dict(*draw(seed, height, width))) tensors[name] = tensor.detach();
    return tensors;
  }

  Pretrained load(const TensorMap& tensors, Model& model, const TextMap& metadata = {}) const {
    write_tensor_file(file(), tensors, metadata);
    return *load_pretrained(config(file()), model, &all_models());
  }

  config::Config config(const std::string& file = "none") const {
    std::vector<std::string> settings = settings_;
    settings.push_back("model.pretrained=" + file);
    return config::load({{model_section(all_models())}, {}}, {}, settings);
  }

 private:
  std::string file() const { return (folder_.path() / "weights.safetensors").string(); }

  test::TemporaryFolder folder_;
  std::vector<std::string> settings_;
};

// Every name by the first pattern that matches it.
TensorMap renamed(const TensorMap& tensors, const std::vector<std::pair<std::string, std::string>>& patterns) {
  TensorMap others;
  for (const auto& [name, tensor] : tensors) {
    std::string other = name;
    for (const auto& [pattern, replacement] : patterns) {
      other = std::regex_replace(name, std::regex("^" + pattern), replacement);
      if (other != name) break;
    }
    others[other] = tensor;
  }
  return others;
}

// Queries, keys and values by themselves.
TensorMap split(TensorMap tensors) {
  TensorMap others;
  for (const auto& [name, tensor] : tensors) {
    const size_t place = name.find("attn.qkv");
    if (place == std::string::npos) {
      others[name] = tensor;
      continue;
    }
    const std::vector<at::Tensor> parts = tensor.chunk(3);
    for (size_t i = 0; i < parts.size(); ++i)
      others[name.substr(0, place) + "attn." + "qkv"[i] + name.substr(place + 8)] = parts[i];
  }
  return others;
}

// The model answers as the one whose weights, under other names, are in `file`.
void check_loads(const SmallTransformer& transformer, const TensorMap& file, const std::string& said) {
  CAPTURE(said);
  const auto expected = transformer.draw(1), model = transformer.draw(2);
  const Pretrained loaded = transformer.load(file, *model);
  CHECK(loaded.drawn.empty());
  CHECK_THAT(loaded.describe(), Contains(said));
  for (const auto& item : expected->named_parameters()) {
    CAPTURE(item.key());
    // DINOv2's class token is a sum, whose rounding errors are of its terms' size.
    CHECK(at::allclose(model->named_parameters()[item.key()], item.value(), 1e-5, 1e-6));
  }
  const at::Tensor images = at::randn({2, 3, 16, 16});
  CHECK(at::allclose(model->forward(images).scores, expected->forward(images).scores, 1e-4, 1e-5));
}

const std::vector<std::pair<std::string, std::string>> kOpenClip{
    {"cls_token", "visual.class_embedding"},
    {"pos_embed", "visual.positional_embedding"},
    {"patch_embed.proj", "visual.conv1"},
    {"norm_pre", "visual.ln_pre"},
    {"norm\\.", "visual.ln_post."},
    {"blocks.(\\d+).norm(\\d)", "visual.transformer.resblocks.$1.ln_$2"},
    {"blocks.(\\d+).attn.qkv.", "visual.transformer.resblocks.$1.attn.in_proj_"},
    {"blocks.(\\d+).attn.proj", "visual.transformer.resblocks.$1.attn.out_proj"},
    {"blocks.(\\d+).mlp.fc1", "visual.transformer.resblocks.$1.mlp.c_fc"},
    {"blocks.(\\d+).mlp.fc2", "visual.transformer.resblocks.$1.mlp.c_proj"}};

TEST_CASE("OpenCLIP's network for images is loaded without the one for texts, and its projection where it is wanted") {
  const SmallTransformer clip({"model.ln_pre=true", "model.activation=quick_gelu"});
  TensorMap file = renamed(clip.tensors(), kOpenClip);
  file["visual.class_embedding"] = file["visual.class_embedding"].flatten();
  file["visual.positional_embedding"] = file["visual.positional_embedding"][0];
  file["visual.proj"] = at::randn({12, 7});
  file["positional_embedding"] = at::randn({77, 9});
  file["transformer.resblocks.0.ln_1.weight"] = at::randn({9});
  file["transformer.resblocks.0.attn.in_proj_weight"] = at::randn({27, 9});
  file["token_embedding.weight"] = at::randn({50, 9});
  file["logit_scale"] = at::zeros({});
  file["visual.head.weight"] = file.extract("head.weight").mapped();
  file["visual.head.bias"] = file.extract("head.bias").mapped();
  check_loads(clip, file, "OpenCLIP's names");
  TensorMap in_module;
  for (const auto& [name, tensor] : file) in_module["module." + name] = tensor;
  check_loads(clip, in_module, "without its projection");
}

TEST_CASE("Hugging Face's ViT and Dinov2 are loaded, of old and new versions") {
  const std::vector<std::pair<std::string, std::string>> outside{
      {"cls_token", "P.embeddings.cls_token"},
      {"reg_token", "P.embeddings.register_tokens"},
      {"pos_embed", "P.embeddings.position_embeddings"},
      {"patch_embed.proj", "P.embeddings.patch_embeddings.projection"},
      {"norm\\.", "P.layernorm."},
      {"head", "classifier"}};
  const auto with_blocks = [&](const std::vector<std::pair<std::string, std::string>>& in_block, const char* blocks,
                               const char* prefix) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& [ours, theirs] : outside)
      all.emplace_back(ours, std::regex_replace(theirs, std::regex("^P\\."), prefix));
    for (const auto& [ours, theirs] : in_block)
      all.emplace_back("blocks.(\\d+)." + ours, fmt::format("{}{}$1.{}", prefix, blocks, theirs));
    return all;
  };
  const SmallTransformer vit, dinov2({"model.layer_scale=0.1"});
  TensorMap file = renamed(split(vit.tensors()), with_blocks({{"norm1", "layernorm_before"},
                                                              {"norm2", "layernorm_after"},
                                                              {"attn.q\\.", "attention.attention.query."},
                                                              {"attn.k\\.", "attention.attention.key."},
                                                              {"attn.v\\.", "attention.attention.value."},
                                                              {"attn.proj", "attention.output.dense"},
                                                              {"mlp.fc1", "intermediate.dense"},
                                                              {"mlp.fc2", "output.dense"}},
                                                             "encoder.layer.", "vit."));
  REQUIRE(file.contains("vit.encoder.layer.2.attention.attention.query.bias"));
  file["vit.pooler.dense.weight"] = at::randn({12, 12});
  check_loads(vit, file, "Hugging Face's names");

  file = renamed(split(vit.tensors()), with_blocks({{"norm1", "layernorm_before"},
                                                    {"norm2", "layernorm_after"},
                                                    {"attn.(q|k|v)\\.", "attention.$2_proj."},
                                                    {"attn.proj", "attention.o_proj"}},
                                                   "layers.", "vit."));
  REQUIRE(file.contains("vit.layers.2.attention.q_proj.bias"));
  check_loads(vit, file, "Hugging Face's names");

  file = renamed(split(dinov2.tensors()), with_blocks({{"attn.q\\.", "attention.attention.query."},
                                                       {"attn.k\\.", "attention.attention.key."},
                                                       {"attn.v\\.", "attention.attention.value."},
                                                       {"attn.proj", "attention.output.dense"},
                                                       {"ls(\\d).gamma", "layer_scale$2.lambda1"}},
                                                      "encoder.layer.", "dinov2."));
  REQUIRE(file.contains("dinov2.encoder.layer.0.layer_scale2.lambda1"));
  file["dinov2.embeddings.mask_token"] = at::randn({1, 12});
  check_loads(dinov2, file, "without the prefix dinov2.");
}

// The file of a transformer as Hugging Face's CLIP names its network for images.
TensorMap as_hugging_face_clip(const TensorMap& tensors) {
  TensorMap file =
      renamed(split(tensors), {{"cls_token", "vision_model.embeddings.class_embedding"},
                               {"pos_embed", "vision_model.embeddings.position_embedding.weight"},
                               {"patch_embed.proj", "vision_model.embeddings.patch_embedding"},
                               {"norm_pre", "vision_model.pre_layrnorm"},
                               {"norm\\.", "vision_model.post_layernorm."},
                               {"blocks.(\\d+).norm", "vision_model.encoder.layers.$1.layer_norm"},
                               {"blocks.(\\d+).attn.(q|k|v)\\.", "vision_model.encoder.layers.$1.self_attn.$2_proj."},
                               {"blocks.(\\d+).attn.proj", "vision_model.encoder.layers.$1.self_attn.out_proj"},
                               {"blocks.(\\d+).mlp", "vision_model.encoder.layers.$1.mlp"},
                               {"head", "vision_model.head"}});
  file["vision_model.embeddings.class_embedding"] = file["vision_model.embeddings.class_embedding"].flatten();
  file["vision_model.embeddings.position_embedding.weight"] =
      file["vision_model.embeddings.position_embedding.weight"][0];
  return file;
}

TEST_CASE("Hugging Face's CLIP is loaded without the network for texts") {
  const SmallTransformer clip({"model.ln_pre=true"});
  TensorMap file = as_hugging_face_clip(clip.tensors());
  file["vision_model.embeddings.position_ids"] = at::arange(17).view({1, 17});
  file["visual_projection.weight"] = at::randn({7, 12});
  file["text_model.encoder.layers.0.layer_norm1.weight"] = at::randn({9});
  file["text_model.embeddings.position_ids"] = at::arange(77).view({1, 77});
  file["encoder.layers.0.layer_norm1.weight"] = at::randn({9});  // named as one for images, without the prefix
  file["logit_scale"] = at::zeros({});
  check_loads(clip, file, "without the network for texts");
}

TEST_CASE("Meta's DINOv2 is loaded, with its blocks in chunks and with registers too") {
  const SmallTransformer plain({"model.layer_scale=0.1"}),
      with_registers({"model.layer_scale=0.1", "model.registers=4"});
  TensorMap file = plain.tensors();
  file["mask_token"] = at::randn({1, 12});
  check_loads(plain, file, "DINOv2's names");
  check_loads(plain, renamed(file, {{"blocks.0", "blocks.0.0"}, {"blocks.(\\d)", "blocks.1.$1"}}), "DINOv2's names");
  TensorMap teacher;
  for (const auto& [name, tensor] : file) teacher["teacher.backbone." + name] = tensor;
  check_loads(plain, teacher, "without the prefix teacher.backbone.");

  file = with_registers.tensors();
  const at::Tensor position = at::randn({1, 1, 12});
  file["register_tokens"] = file.extract("reg_token").mapped();
  file["cls_token"] = file["cls_token"] - position;
  file["pos_embed"] = at::cat({position, file["pos_embed"]}, 1);
  file["mask_token"] = at::randn({1, 12});
  check_loads(with_registers, file, "DINOv2's names");
}

TEST_CASE("torchvision's names and timm's are each other's") {
  const SmallTransformer timm;
  const TensorMap file =
      renamed(timm.tensors(), {{"cls_token", "class_token"},
                               {"pos_embed", "encoder.pos_embedding"},
                               {"patch_embed.proj", "conv_proj"},
                               {"norm\\.", "encoder.ln."},
                               {"head", "heads.head"},
                               {"blocks.(\\d+).norm", "encoder.layers.encoder_layer_$1.ln_"},
                               {"blocks.(\\d+).attn.qkv.", "encoder.layers.encoder_layer_$1.self_attention.in_proj_"},
                               {"blocks.(\\d+).attn.proj", "encoder.layers.encoder_layer_$1.self_attention.out_proj"},
                               {"blocks.(\\d+).mlp.fc1", "encoder.layers.encoder_layer_$1.mlp.0"},
                               {"blocks.(\\d+).mlp.fc2", "encoder.layers.encoder_layer_$1.mlp.3"}});
  check_loads(timm, file, "torchvision's names");

  FileTensors back;
  for (const auto& [name, tensor] : timm.tensors())
    back[name] = {Dtype::kFloat32, tensor.sizes().vec(), [tensor] { return tensor; }};
  const auto done = adapt_transformer(back, {"encoder.pos_embedding", 4, 4, 4, 1, false}, {0, 0});
  CHECK(done == std::vector<std::string>{"timm's names"});
  REQUIRE(back.size() == file.size());
  for (const auto& [name, tensor] : back) {
    CAPTURE(name);
    REQUIRE(file.contains(name));
    CHECK(at::equal(tensor.read(), file.at(name)));
  }
}

at::Tensor places(int64_t number) {
  return at::sin(0.7 * at::arange(number, at::kDouble)).to(at::kFloat).view({1, number, 1});
}

TEST_CASE("position embeddings are resized as their sources resize them") {
  // From 4x4 to 3x5 by timm's resample_abs_pos_embed, the formula of DINOv2's interpolate_pos_encoding, that of Hugging
  // Face's, and torch.nn.functional.interpolate with align_corners, which torchvision's interpolate_embeddings calls.
  const std::vector<std::pair<PositionResize, std::vector<float>>> expected{
      {PositionResize::kAntialiased,
       {0.374611, 0.432033, 0.388256, 0.204556, -0.001067, -0.215940, -0.167966, -0.070408, 0.052524, 0.148199,
        0.278035, 0.075620, -0.175458, -0.363303, -0.446844}},
      {PositionResize::kPlainOffset,
       {0.502597, 0.683453, 0.735839, 0.504447, 0.187335, -0.320956, -0.343138, -0.282830, -0.115072, 0.055525,
        0.277643, 0.077672, -0.194714, -0.386792, -0.459419}},
      {PositionResize::kPlain,
       {0.483045, 0.651475, 0.683655, 0.440155, 0.146606, -0.294872, -0.235213, -0.098210, 0.078396, 0.204421, 0.310962,
        -0.018113, -0.419205, -0.651255, -0.697053}},
      {PositionResize::kAlignedCorners,
       {0.644218, 0.921032, 1.005841, 0.730642, 0.334988, -0.288605, -0.228893, -0.098210, 0.067625, 0.192996, 0.319098,
        -0.157025, -0.678034, -0.956363, -0.979178}}};
  for (const auto& [how, values] : expected) {
    const at::Tensor resized = resized_positions(places(17), 1, {4, 4}, {3, 5}, how);
    REQUIRE(resized.sizes() == at::IntArrayRef{1, 16, 1});
    CHECK(resized[0][0].item<float>() == 0);  // the class'
    CHECK(at::allclose(resized.flatten().slice(0, 1), at::tensor(values), 0, 2e-6));
  }
}

TEST_CASE("weights for images of another size have their position embeddings resized by the source's way") {
  const SmallTransformer timm, with_registers({"model.registers=4"}), clip({"model.ln_pre=true"});
  const auto resized = [](const SmallTransformer& transformer, const TensorMap& file, const std::string& said) {
    const auto model = transformer.draw(2, 12, 20);
    CHECK_THAT(transformer.load(file, *model).describe(), Contains("4x4") && Contains("3x5") && Contains(said));
    return model->named_parameters()["pos_embed"].detach().clone();
  };
  const auto expected = [](const at::Tensor& positions, int64_t before, PositionResize how) {
    return resized_positions(positions, before, {4, 4}, {3, 5}, how);
  };
  TensorMap file = timm.tensors();
  const at::Tensor positions = file["pos_embed"];
  CHECK(at::equal(resized(timm, file, "antialiasing"), expected(positions, 1, PositionResize::kAntialiased)));
  file["mask_token"] = at::zeros({1, 12});
  CHECK(at::equal(resized(timm, file, "0.1"), expected(positions, 1, PositionResize::kPlainOffset)));

  const TensorMap clip_file = clip.tensors();
  CHECK(at::equal(resized(clip, as_hugging_face_clip(clip_file), "bicubic"),
                  expected(clip_file.at("pos_embed"), 1, PositionResize::kPlain)));

  file = with_registers.tensors();
  file["register_tokens"] = file.extract("reg_token").mapped();
  file["mask_token"] = at::zeros({1, 12});
  const at::Tensor patches = file["pos_embed"];
  file["pos_embed"] = at::cat({at::zeros({1, 1, 12}), patches}, 1);
  CHECK(at::equal(resized(with_registers, file, "antialiasing"), expected(patches, 0, PositionResize::kAntialiased)));
}

TEST_CASE("a grid that is not square is known from a card, and else square ones are taken for square") {
  const SmallTransformer transformer;
  const TensorMap file = transformer.tensors(1, 8, 32);  // 2x8 patches, as many as 4x4
  ModelCard card{.dataset = "d",
                 .class_names = {"a", "b", "c", "d", "e"},
                 .class_keys = {},
                 .superclass_names = {},
                 .superclass_of = {},
                 .taxonomy = {},
                 .train_counts = {1, 1, 1, 1, 1},
                 .channels = 3,
                 .input_height = 8,
                 .input_width = 32,
                 .mean = {0, 0, 0},
                 .std = {1, 1, 1},
                 .features_model = {},
                 .head = "linear"};
  const TextMap metadata{{"card", to_text(card)}, {"config", ""}};
  const auto same = transformer.draw(2, 8, 32);
  transformer.load(file, *same, metadata);
  CHECK(at::equal(same->named_parameters()["pos_embed"], file.at("pos_embed")));
  const auto without = transformer.draw(2, 8, 32);
  CHECK_THAT(transformer.load(file, *without).describe(), Contains("4x4") && Contains("2x8"));

  TensorMap odd = file;
  odd["pos_embed"] = at::zeros({1, 1 + 15, 12});
  CHECK_THROWS_WITH(transformer.load(odd, *transformer.draw(2)), Contains("pos_embed: [1, 16, 12]"));
}

TEST_CASE("weights with an adapter that the model does not have say how they are taken") {
  const SmallTransformer plain, lora({"model.adapter.kind=lora"}), narrow({"model.adapter.kind=adaptformer"});
  CHECK_THROWS_WITH(plain.load(lora.tensors(), *plain.draw(2)), Contains("settrain export") && !Contains(".up"));
  CHECK_THROWS_WITH(plain.load(narrow.tensors(), *plain.draw(2)),
                    Contains("model.adapter.kind: adaptformer") && !Contains(".up"));
  CHECK_THROWS_WITH(lora.load(narrow.tensors(), *lora.draw(2)), Contains("model.adapter.kind: adaptformer"));
  CHECK_NOTHROW(lora.load(lora.tensors(), *lora.draw(2)));
  CHECK_NOTHROW(lora.load(plain.tensors(), *lora.draw(2)));

  TensorMap misfit = lora.tensors();
  misfit["norm.weight"] = at::ones({13});
  CHECK_THROWS_WITH(plain.load(misfit, *plain.draw(2)), Contains("norm.weight: [13]"));
  const SmallTransformer of_rank_3({"model.adapter.kind=lora", "model.adapter.rank=3"});
  CHECK_THROWS_WITH(of_rank_3.load(lora.tensors(), *of_rank_3.draw(2)),
                    Contains("qkv.up: [36, 8]") && Contains("[36, 3]"));
}

TEST_CASE("weights of no registered model are refused without a name") {
  const SmallTransformer transformer;
  CHECK_THROWS_WITH(transformer.load({{"a.weight", at::zeros({2, 2})}}, *transformer.draw(2)),
                    Contains("a.weight") && !Contains("model.name:"));
}

TEST_CASE("each registered model's weights are refused by one of another family, with the name that they fit") {
  constexpr int64_t kMostParameters = 30'000'000;  // files of larger networks would take seconds
  const test::TemporaryFolder folder;
  const std::string file = (folder / "weights.safetensors").string();
  for (const ModelEntry& entry : all_models().entries()) {
    CAPTURE(entry.name);
    if (entry.name == kHeadOnly) continue;  // many networks have a head of that name
    const auto configured = [&](const std::string& name) {
      return config::load({{model_section(all_models())}, {}}, {}, {"model.name=" + name, "model.pretrained=" + file});
    };
    TensorMap tensors;
    bool is_transformer = false;
    {
      const CostCounter without_storage;
      const auto model = entry.make(configured(entry.name), entry.usual);
      if (model->num_parameters() > kMostParameters) continue;
      is_transformer = model->patch_grid().has_value();
      for (const auto& [name, tensor] : state_dict(*model)) {
        tensors[name] = at::zeros(tensor.sizes(), tensor.is_floating_point() ? at::kBFloat16 : at::kLong);
      }
    }
    write_tensor_file(file, tensors);
    const std::string name = is_transformer ? "resnet8" : "vit_tiny_patch16";
    const ModelEntry& other = all_models().at(name);
    const config::Config config = configured(name);
    const auto model = other.make(config, other.usual);
    CHECK_THROWS_WITH(load_pretrained(config, *model, &all_models()),
                      Contains(tensors.begin()->first) && Contains("model.name:") && Contains(" " + entry.name));
  }
}

TEST_CASE("files of hostile names and shapes are refused, not misread") {
  const SmallTransformer transformer({"model.registers=4"});
  TensorMap file = transformer.tensors();
  file["register_tokens"] = file["reg_token"];  // would be named as the other
  CHECK_THROWS_AS(transformer.load(file, *transformer.draw(2)), KeyError);
  file = transformer.tensors();
  file["register_tokens"] = file.extract("reg_token").mapped();
  file["cls_token"] = at::zeros({3});
  file["pos_embed"] = at::zeros({0, 7, 0});
  CHECK_THROWS_AS(transformer.load(file, *transformer.draw(2)), KeyError);
  file = split(transformer.tensors());
  file["blocks.0.attn.k.weight"] = at::zeros({0});
  CHECK_THROWS_AS(transformer.load(file, *transformer.draw(2)), KeyError);
}

}  // namespace
}  // namespace settrain
