#include "models/entries.h"

namespace settrain {

PretrainedSource torchvision_weights(const std::string& name, const std::string& file, const std::string& interpolation,
                                     double crop_share) {
  return {"torchvision's " + name + "_Weights.IMAGENET1K_V1", "https://download.pytorch.org/models/" + file, "imagenet",
          interpolation, crop_share};
}

void register_builtin_models(ModelRegistry& registry) {
  for (const auto& entries : {small_resnet_entries(), small_densenet_entries(), resnet_entries(), densenet_entries(),
                              convnext_entries(), efficientnet_entries(), inception_entries(), mobilenet_entries(),
                              sequential_entries(), shufflenet_entries(), head_only_entries()}) {
    for (const ModelEntry& entry : entries) registry.add(entry);
  }
  for (const ModelEntry& entry : vision_transformer_entries()) registry.add(entry);
}

}  // namespace settrain
