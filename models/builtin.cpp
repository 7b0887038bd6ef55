#include <string>

#include "models/model_options.h"
#include "models/registry.h"
#include "models/small_resnet.h"

namespace settrain {
namespace {

ModelEntry small_resnet(int64_t depth) {
  const std::string name = "resnet" + std::to_string(depth);
  return {name, "ResNet-" + std::to_string(depth) + " for images of about 32x32 pixels (He et al. 2016, section 4.2).",
          SmallResNetOptions::keys(), [depth](const config::Config& config, const ModelContext& context) {
            return std::make_shared<SmallResNet>(depth, config.read<SmallResNetOptions>("model").width,
                                                 config.read<ModelOptions>("model").head, context);
          }};
}

}  // namespace

void register_builtin_models(ModelRegistry& registry) {
  for (int64_t depth : {8, 20, 32, 44, 56}) registry.add(small_resnet(depth));
}

}  // namespace settrain
