#include <fmt/format.h>

#include <string>

#include "models/densenet.h"
#include "models/model_options.h"
#include "models/registry.h"
#include "models/resnet.h"
#include "models/small_densenet.h"
#include "models/small_resnet.h"

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

ModelEntry resnet(const std::string& name, const std::string& title, const ResNetShape& shape) {
  return {name,
          title + " for images of about 224x224 pixels, torchvision's.",
          {},
          [shape](const config::Config& config, const ModelContext& context) {
            return std::make_shared<ResNet>(shape, config.read<ModelOptions>("model"), context);
          },
          kImageNet};
}

ModelEntry densenet(int64_t depth) {
  return {fmt::format("densenet{}", depth),
          fmt::format("DenseNet-{} for images of about 224x224 pixels, torchvision's.", depth),
          {},
          [depth](const config::Config& config, const ModelContext& context) {
            return std::make_shared<DenseNet>(densenet_shape(depth), config.read<ModelOptions>("model"), context);
          },
          kImageNet};
}

}  // namespace

void register_builtin_models(ModelRegistry& registry) {
  for (int64_t depth : {8, 20, 32, 44, 56}) registry.add(small_resnet(depth));
  registry.add(small_densenet());
  for (int64_t growth : {12, 40}) registry.add(small_densenet(40, growth));
  for (int64_t depth : {18, 34, 50, 101, 152}) {
    registry.add(resnet(fmt::format("resnet{}", depth), fmt::format("ResNet-{}", depth), resnet_shape(depth)));
  }
  ResNetShape wide = resnet_shape(50);
  wide.widening = 2;
  registry.add(resnet("wide_resnet50_2", "Wide ResNet-50-2", wide));
  for (int64_t depth : {121, 161, 169, 201}) registry.add(densenet(depth));
}

}  // namespace settrain
