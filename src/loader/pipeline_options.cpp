#include "src/loader/pipeline_options.h"

namespace settrain {

config::Keys PipelineOptions::keys() {
  using config::key;
  using O = PipelineOptions;
  return {
      key("pipeline", &O::pipeline, "plain",
          "How an image becomes the model's input. plain: resized to cover the input and centre-cropped, unless it "
          "has that size already. cifar: the same, in training with a random crop with padding 4 and random "
          "horizontal flip. plantnet: resize and random crop, no flip (Garcin et al. 2022). imagenet: random resized "
          "crop and flip. imagenet2018: resize, random crop and flip (Berrada et al. 2018). In evaluation the last "
          "three resize the shorter side and take the centre crop.")
          .one_of({"plain", "cifar", "plantnet", "imagenet", "imagenet2018"}),
      key("input_size", &O::input_size, O::kAuto,
          "Height and width of the model's input; auto is the images' own where all have one, else 224.")
          .at_least(4)
          .at_most(4096)
          .in("pixels")
          .word("auto", O::kAuto),
      key("resize_size", &O::resize_size, O::kAuto,
          "The shorter side after resizing, before the crop; auto is 8/7 of input_size, so 256 for 224, and "
          "input_size itself for the single crop with which imagenet2018 evaluates.")
          .at_least(4)
          .at_most(8192)
          .in("pixels")
          .word("auto", O::kAuto),
      key("augmentation.pad", &O::pad, O::kAuto,
          "Zero padding on each side of a training image before a random crop; auto is the pipeline's own. Only for "
          "plain and cifar.")
          .at_least(0)
          .at_most(1024)
          .in("pixels")
          .word("auto", O::kAuto),
      key("augmentation.flip", &O::flip, "auto",
          "Random horizontal flip of training images, with probability 0.5; auto is the pipeline's own.")
          .one_of({"auto", "true", "false"}),
  };
}

}  // namespace settrain
