#include "src/loader/pipeline_options.h"

namespace settrain {

config::Keys PipelineOptions::keys() {
  using config::key;
  using O = PipelineOptions;
  return {
      key("pipeline", &O::pipeline, "plain",
          "How an image becomes the model's input. plain: scaled to cover the input and cut in the centre, or left alone "
          "where it has that size. cifar: the same, moved by up to 4 pixels over a black border and mirrored in "
          "training. plantnet: scaled, cut at random, not mirrored (Garcin et al. 2022). imagenet: a random resized crop, "
          "mirrored. imagenet2018: scaled, cut at random, mirrored (Berrada et al. 2018). The last three scale the "
          "shorter side and cut in the centre in evaluation.")
          .one_of({"plain", "cifar", "plantnet", "imagenet", "imagenet2018"}),
      key("input_size", &O::input_size, O::kAuto,
          "Height and width of the model's input; auto is the images' own where all have one, else 224.")
          .at_least(4)
          .at_most(4096)
          .in("pixels")
          .word("auto", O::kAuto),
      key("resize_size", &O::resize_size, O::kAuto,
          "The shorter side after scaling, before a crop; auto is 8/7 of input_size, so 256 for 224, and input_size "
          "itself for the single crop with which imagenet2018 evaluates.")
          .at_least(4)
          .at_most(8192)
          .in("pixels")
          .word("auto", O::kAuto),
      key("augmentation.pad", &O::pad, O::kAuto,
          "Training images are moved by up to so many pixels, over a black border; auto is what the pipeline says. Only "
          "plain and cifar have it.")
          .at_least(0)
          .at_most(1024)
          .in("pixels")
          .word("auto", O::kAuto),
      key("augmentation.flip", &O::flip, "auto",
          "Mirror training images left to right with probability one half; auto is what the pipeline says.")
          .one_of({"auto", "true", "false"}),
  };
}

}  // namespace settrain
