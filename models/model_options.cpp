#include "models/model_options.h"

#include "src/config/variants.h"

namespace settrain {

config::Keys ModelOptions::keys() {
  return {
      config::key("head", &ModelOptions::head, "linear",
                  "The last layer: linear; normalised, whose scores are cosines between features and class weights "
                  "(needed by losses with margins); or two_head, two linear layers on the same features, for losses "
                  "that also train a multi-label head.")
          .one_of({"linear", "normalised", "two_head"}),
      config::key("head_bias", &ModelOptions::head_bias, true,
                  "Whether linear heads have a bias; a normalised one has none."),
      config::key("pretrained", &ModelOptions::pretrained, kNone,
                  "Pretrained weights: none, for random initialisation; or a file with torchvision's names, in "
                  "safetensors or torch.save's format. A head whose shape does not match the file is initialised "
                  "randomly. The file is read only when a run starts.")
          .not_empty()};
}

config::Section model_section(const ModelRegistry& registry) {
  return {"model", "The network.", ModelOptions::keys(), "name", "resnet20", config::variants_of(registry)};
}

}  // namespace settrain
