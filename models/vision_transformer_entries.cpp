// The registered vision transformers, and their keys.
#include <fmt/format.h>

#include <cctype>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/entries.h"
#include "models/model.h"

namespace settrain {
namespace {

config::Key stochastic_depth_key() {
  return random_depth_key(&VisionTransformerOptions::stochastic_depth, 0);
}

config::Key pooling_key() {
  return config::key("pooling", &VisionTransformerOptions::pooling, VisionTransformerOptions::kToken,
                     "What the head sees: token, the class' token; mean, the mean of the patches' tokens; or both, one "
                     "behind the other (as DINOv2's linear classifiers on one block).",
                     {{"token", VisionTransformerOptions::kToken},
                      {"mean", VisionTransformerOptions::kMean},
                      {"both", VisionTransformerOptions::kBoth}});
}

config::Key activation_key(const char* help) {
  return config::key("activation", &VisionTransformerOptions::activation, VisionTransformerOptions::kGelu, help,
                     {{"gelu", VisionTransformerOptions::kGelu}, {"quick_gelu", VisionTransformerOptions::kQuickGelu}});
}

constexpr const char* kClipFile = "open_clip_pytorch_model.bin";

config::Keys clip_keys() {
  return {activation_key("Between the layers of a block's MLP: gelu (BioCLIP, LAION), or quick_gelu, x "
                         "sigmoid(1.702 x) (OpenAI's weights, and OpenCLIP's models with quickgelu in their names)."),
          pooling_key(),
          config::key("projection", &VisionTransformerOptions::projection, false,
                      "Whether the head sees the pooled features times OpenCLIP's matrix `proj`, which leads to the "
                      "space that images share with texts; else the features before it, as in timm."),
          stochastic_depth_key()};
}

config::Keys shape_keys() {
  return {
      config::key("patch", &VisionTransformerShape::patch, 16, "Height and width of a patch.")
          .at_least(1)
          .at_most(256)
          .in("pixels"),
      config::key("width", &VisionTransformerShape::features, 192, "Features of a token; a multiple of model.heads.")
          .at_least(1)
          .at_most(8192)
          .in("features"),
      config::key("depth", &VisionTransformerShape::blocks, 12, "Blocks, each of attention and an MLP.")
          .at_least(1)
          .at_most(200)
          .in("blocks"),
      config::key("heads", &VisionTransformerShape::heads, 3, "Heads of an attention.").at_least(1).at_most(8192),
      config::key("class_token", &VisionTransformerShape::class_token, true,
                  "Whether there is a token for the class; without it set model.pooling: mean."),
      config::key("registers", &VisionTransformerShape::registers, 0,
                  "Tokens that stand for nothing, which keep artefacts out of the patches' (Darcet et al. 2024, who "
                  "take 4). With them the class' token has no position embedding.")
          .at_least(0)
          .at_most(64)
          .in("tokens"),
      config::key("layer_scale", &VisionTransformerShape::layer_scale, 0.0,
                  "First value of LayerScale's factors (DINOv2: 1e-5); 0: there are none.")
          .at_least(0),
      config::key("ln_pre", &VisionTransformerShape::ln_pre, false,
                  "A layer norm before the blocks, as in CLIP: then patches have no bias, and layer norms add 1e-5 to "
                  "variances, not 1e-6.")};
}

VisionTransformerOptions read_parts(const config::Config& config) {
  auto parts = config.read<VisionTransformerOptions>("model");
  parts.adapter = AdapterOptions::read(config);
  return parts;
}

/// `side`: of the images that `weights` were trained on, in pixels.
ModelEntry transformer_entry(const std::string& name, const std::string& help, const VisionTransformerShape& shape,
                             config::Keys keys, int64_t side, PretrainedSource weights) {
  return {name,
          help,
          config::joined(std::move(keys), AdapterOptions::keys()),
          [shape](const config::Config& config, const ModelContext& context) {
            return make_vision_transformer(shape, read_parts(config), config.read<ModelOptions>("model"), context);
          },
          {kImageNet.num_classes, kImageNet.channels, side, side},
          std::move(weights)};
}

/// Sizes of the papers, by timm's words and the papers' letters.
struct TransformerSize {
  const char *word, *letters;
  int64_t blocks, features, heads;
};

constexpr TransformerSize kTiny{"tiny", "Ti", 12, 192, 3}, kSmall{"small", "S", 12, 384, 6},
    kBase{"base", "B", 12, 768, 12}, kLarge{"large", "L", 24, 1024, 16};

VisionTransformerShape timm_shape(int64_t patch, const TransformerSize& size) {
  return {.patch = patch,
          .blocks = size.blocks,
          .features = size.features,
          .heads = size.heads,
          .names = TensorNames::kTimm};
}

ModelEntry torchvision_entry() {
  return transformer_entry(
      "vit_b_16", "ViT-B/16, best for images of 224x224 pixels, torchvision's.",
      {.patch = 16, .blocks = 12, .features = 768, .heads = 12, .names = TensorNames::kTorchvision},
      {stochastic_depth_key()}, 224, torchvision_weights("ViT_B_16", "vit_b_16-c867db91.pth"));
}

ModelEntry free_entry() {
  config::Keys keys = shape_keys();
  keys.push_back(activation_key("Between the layers of a block's MLP: gelu, or quick_gelu, x sigmoid(1.702 x)."));
  keys.push_back(pooling_key());
  keys.push_back(stochastic_depth_key());
  return {"vit",
          "Vision transformer of any depth and width, with timm's names of tensors.",
          config::joined(std::move(keys), AdapterOptions::keys()),
          [](const config::Config& config, const ModelContext& context) {
            return make_vision_transformer(config.read<VisionTransformerShape>("model"), read_parts(config),
                                           config.read<ModelOptions>("model"), context);
          },
          {100, 3, 224, 224}};
}

ModelEntry timm_entry(const TransformerSize& size, const std::string& trained) {
  const std::string name = fmt::format("vit_{}_patch16", size.word), weights = name + "_224." + trained;
  return transformer_entry(
      name, fmt::format("ViT-{}/16, best for images of 224x224 pixels, timm's.", size.letters), timm_shape(16, size),
      {pooling_key(), stochastic_depth_key()}, 224,
      {"timm's " + weights, fmt::format("https://huggingface.co/timm/{}/resolve/main/model.safetensors", weights),
       "half", "bicubic", 0.9});
}

ModelEntry dinov2_entry(const TransformerSize& size, int64_t registers) {
  VisionTransformerShape shape = timm_shape(14, size);
  shape.registers = registers;
  shape.layer_scale = 1e-5;
  const std::string hub = fmt::format("dinov2_vit{}14", size.word[0]);
  return transformer_entry(
      fmt::format("vit_{}_patch14_{}dinov2", size.word, registers > 0 ? "reg4_" : ""),
      fmt::format("DINOv2's ViT-{}/14{}, trained on images of 518x518 pixels; timm's names.", size.letters,
                  registers > 0 ? " with 4 registers" : ""),
      shape, {pooling_key(), stochastic_depth_key()}, 518,
      {"Meta's DINOv2",
       fmt::format("https://dl.fbaipublicfiles.com/dinov2/{0}/{0}{1}_pretrain.pth", hub, registers > 0 ? "_reg4" : ""),
       "imagenet", "bicubic", 1});
}

ModelEntry clip_entry(const TransformerSize& size, int64_t patch, int64_t projected, PretrainedSource weights) {
  VisionTransformerShape shape = timm_shape(patch, size);
  shape.ln_pre = true;
  shape.projected = projected;
  const char letter = static_cast<char>(std::tolower(size.letters[0]));
  return transformer_entry(
      fmt::format("clip_vit_{}_{}", letter, patch),
      fmt::format("ViT-{}/{}, the images' network of CLIP and BioCLIP, best for 224x224 pixels; timm's names.",
                  size.letters, patch),
      shape, clip_keys(), 224, std::move(weights));
}

}  // namespace

std::vector<ModelEntry> vision_transformer_entries() {
  std::vector<ModelEntry> entries{torchvision_entry()};
  for (const auto& [size, trained] :
       {std::pair{kTiny, "augreg_in21k_ft_in1k"}, std::pair{kSmall, "augreg_in21k_ft_in1k"},
        std::pair{kBase, "augreg2_in21k_ft_in1k"}, std::pair{kLarge, "augreg_in21k_ft_in1k"}}) {
    entries.push_back(timm_entry(size, trained));
  }
  for (const int64_t registers : {0, 4}) {
    for (const TransformerSize& size : {kSmall, kBase, kLarge}) entries.push_back(dinov2_entry(size, registers));
  }
  entries.push_back(clip_entry(
      kBase, 16, 512, {"BioCLIP", "https://huggingface.co/imageomics/bioclip", "clip", "bicubic", 1, kClipFile}));
  entries.push_back(clip_entry(
      kLarge, 14, 768, {"BioCLIP 2", "https://huggingface.co/imageomics/bioclip-2", "clip", "bicubic", 1, kClipFile}));
  entries.push_back(free_entry());
  return entries;
}

}  // namespace settrain
