#include <fmt/format.h>

#include <string>
#include <utility>

#include "models/convnext.h"
#include "models/densenet.h"
#include "models/model_options.h"
#include "models/registry.h"
#include "models/resnet.h"
#include "models/small_densenet.h"
#include "models/small_resnet.h"
#include "models/vision_transformer.h"

namespace settrain {
namespace {

constexpr ModelContext kCifar100{100, 3, 32, 32}, kImageNet{1000, 3, 224, 224};

ModelEntry small_resnet(int64_t depth) {
  return {fmt::format("resnet{}", depth),
          fmt::format("ResNet-{} for images of about 32x32 pixels (He et al. 2016, section 4.2).", depth),
          SmallResNetOptions::keys(),
          [depth](const config::Config& config, const ModelContext& context) {
            return std::make_shared<SmallResNet>(depth, config.read<SmallResNetOptions>("model").width,
                                                 config.read<ModelOptions>("model"), context);
          },
          kCifar100};
}

std::shared_ptr<Model> make_small_densenet(const SmallDenseNetShape& shape, const config::Config& config,
                                           const ModelContext& context) {
  return std::make_shared<SmallDenseNet>(shape, config.read<SmallDenseNetOptions>("model").bc,
                                         config.read<ModelOptions>("model"), context);
}

ModelEntry small_densenet() {
  config::Keys keys = SmallDenseNetShape::keys();
  for (const config::Key& key : SmallDenseNetOptions::keys()) keys.push_back(key);
  return {"densenet", "DenseNet of any depth and growth for images of 32x32 pixels (Huang et al. 2017).", keys,
          [](const config::Config& config, const ModelContext& context) {
            return make_small_densenet(config.read<SmallDenseNetShape>("model"), config, context);
          },
          kCifar100};
}

ModelEntry small_densenet(int64_t depth, int64_t growth) {
  return {fmt::format("densenet{}_{}", depth, growth),
          fmt::format("DenseNet {}-{} of the papers' experiments, for images of 32x32 pixels.", depth, growth),
          SmallDenseNetOptions::keys(),
          [depth, growth](const config::Config& config, const ModelContext& context) {
            return make_small_densenet({depth, growth}, config, context);
          },
          kCifar100};
}

// Trained on ImageNet. `file` as torchvision has it, with the first digits of its SHA-256.
PretrainedSource torchvision_weights(const std::string& name, const std::string& file) {
  return {fmt::format("torchvision's {}_Weights.IMAGENET1K_V1", name), "https://download.pytorch.org/models/" + file};
}

ModelEntry resnet(const std::string& name, const std::string& title, const ResNetShape& shape,
                  const PretrainedSource& pretrained) {
  return {name,
          title + " for images of about 224x224 pixels, torchvision's.",
          {},
          [shape](const config::Config& config, const ModelContext& context) {
            return std::make_shared<ResNet>(shape, config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          pretrained};
}

ModelEntry densenet(int64_t depth, const char* digits) {
  return {fmt::format("densenet{}", depth),
          fmt::format("DenseNet-{} for images of about 224x224 pixels, torchvision's.", depth),
          {},
          [depth](const config::Config& config, const ModelContext& context) {
            return std::make_shared<DenseNet>(densenet_shape(depth), config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          torchvision_weights(fmt::format("DenseNet{}", depth), fmt::format("densenet{}-{}.pth", depth, digits))};
}

ModelEntry convnext_tiny() {
  return {"convnext_tiny",
          "ConvNeXt-T for images of about 224x224 pixels, torchvision's.",
          ConvNextOptions::keys(),
          [](const config::Config& config, const ModelContext& context) {
            return std::make_shared<ConvNext>(kConvNextTiny, config.read<ConvNextOptions>("model").stochastic_depth,
                                              config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          torchvision_weights("ConvNeXt_Tiny", "convnext_tiny-983f1562.pth")};
}

ModelEntry vit_b_16() {
  return {"vit_b_16",
          "ViT-B/16 for square images whose side is a multiple of 16 pixels, best 224, torchvision's.",
          {},
          [](const config::Config& config, const ModelContext& context) {
            return std::make_shared<VisionTransformer>(kVitB16, config.read<ModelOptions>("model"), context);
          },
          kImageNet,
          torchvision_weights("ViT_B_16", "vit_b_16-c867db91.pth")};
}

}  // namespace

void register_builtin_models(ModelRegistry& registry) {
  for (int64_t depth : {8, 20, 32, 44, 56}) registry.add(small_resnet(depth));
  registry.add(small_densenet());
  for (int64_t growth : {12, 40}) registry.add(small_densenet(40, growth));
  using Digits = std::pair<int64_t, const char*>;
  for (const auto& [depth, digits] : {Digits{18, "f37072fd"}, Digits{34, "b627a593"}, Digits{50, "0676ba61"},
                                      Digits{101, "63fe2227"}, Digits{152, "394f9c45"}}) {
    registry.add(
        resnet(fmt::format("resnet{}", depth), fmt::format("ResNet-{}", depth), resnet_shape(depth),
               torchvision_weights(fmt::format("ResNet{}", depth), fmt::format("resnet{}-{}.pth", depth, digits))));
  }
  ResNetShape wide = resnet_shape(50);
  wide.widening = 2;
  registry.add(resnet("wide_resnet50_2", "Wide ResNet-50-2", wide,
                      torchvision_weights("Wide_ResNet50_2", "wide_resnet50_2-95faca4d.pth")));
  ResNetShape grouped = wide;
  grouped.groups = 32;
  registry.add(resnet("resnext50_32x4d", "ResNeXt-50 32x4d", grouped,
                      torchvision_weights("ResNeXt50_32X4D", "resnext50_32x4d-7cdf4587.pth")));
  for (const auto& [depth, digits] :
       {Digits{121, "a639ec97"}, Digits{161, "8d451a50"}, Digits{169, "b2777c0a"}, Digits{201, "c1103571"}}) {
    registry.add(densenet(depth, digits));
  }
  registry.add(convnext_tiny());
  registry.add(vit_b_16());
}

}  // namespace settrain
