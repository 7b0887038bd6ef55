#include "models/model_options.h"

#include "src/config/variants.h"

namespace settrain {

config::Keys ModelOptions::keys() {
  return {
      config::key("head", &ModelOptions::head, "linear",
                  "The last layer: linear; normalised, whose scores are cosines between features and class weights "
                  "(losses with margins need it); or two_head, two linear ones on the same features, for losses "
                  "that train a multi-label head beside the first.")
          .one_of({"linear", "normalised", "two_head"}),
      config::key("head_bias", &ModelOptions::head_bias, true,
                  "Whether linear heads have a bias; a normalised one has none."),
      config::key("pretrained", &ModelOptions::pretrained, kNone,
                  "Weights to start from: none, as they are drawn; or a file with torchvision's names, safetensors or "
                  "what torch.save writes. A head that the file does not fit stays as drawn. The file is read at a "
                  "run's start alone.")
          .not_empty()};
}

config::Section model_section(const ModelRegistry& registry) {
  return {"model", "The network.", ModelOptions::keys(), "name", "resnet20", config::variants_of(registry)};
}

}  // namespace settrain
