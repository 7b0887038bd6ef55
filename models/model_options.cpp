#include "models/model_options.h"

namespace settrain {

config::Keys ModelOptions::keys() {
  return {
      config::key(
          "head", &ModelOptions::head, "linear",
          "The last layer: linear, or normalised, whose scores are cosines between features and class weights; losses "
          "with margins need the latter.")
          .one_of({"linear", "normalised"})};
}

}  // namespace settrain
