#include "datasets/synthetic_options.h"

#include <fmt/format.h>

namespace settrain {

config::Keys SyntheticOptions::keys() {
  using config::key;
  using O = SyntheticOptions;
  return {
      key("num_classes", &O::num_classes, 20, "Number of classes.").at_least(2).at_most(10000).in("classes"),
      key("group_size", &O::group_size, 5, "Classes in a superclass; only these are confused with each other.")
          .at_least(1)
          .in("classes"),
      key("train_size", &O::train_size, 10000, "Training images.").at_least(1).at_most(1e8).in("images"),
      key("val_size", &O::val_size, 2000, "Validation images; 0 for none.").at_least(0).at_most(1e8).in("images"),
      key("test_size", &O::test_size, 2000, "Test images.").at_least(1).at_most(1e8).in("images"),
      key("image_size", &O::image_size, 16, "Height and width.").at_least(4).at_most(1024).in("pixels"),
      key("channels", &O::channels, 3, "Channels of an image: 1 is grey, 3 are colour.").at_least(1).at_most(3),
      key("ambiguity", &O::ambiguity, 0.4,
          "Probability that an image shows any class of the label's superclass instead of the label's own: half of it "
          "in the first superclass, one and a half times in the last.")
          .at_least(0)
          .at_most(1),
      key("imbalance", &O::imbalance, 1.0,
          "Imbalance factor: ratio of the training images of the most frequent class to those of the rarest; 1 is "
          "balanced.")
          .at_least(1)
          .at_most(1e6),
      key("pixel_noise", &O::pixel_noise, 24, "Largest difference of a pixel from its class' pattern.")
          .at_least(0)
          .at_most(60)
          .in("levels of 255"),
      key("labels_per_image", &O::labels_per_image, 1,
          "Labels drawn from P(y | x) for each image, its own label first; duplicates count once. Above 1 only for "
          "losses on label sets; metrics use the image's own label.")
          .at_least(1)
          .at_most(1000)
          .in("labels"),
      key("seed", &O::seed, kRunSeed, "Seed of patterns, labels and noise; auto is the run's seed.")
          .at_least(0)
          .word("auto", kRunSeed),
  };
}

std::string SyntheticOptions::recipe() const {
  const std::string one_label = fmt::format(
      "synthetic 1\nclasses {} of {}\nsamples {} {} {}\nimages {} {}\nambiguity {} imbalance {} noise {} seed {}\n",
      num_classes, group_size, train_size, val_size, test_size, image_size, channels, ambiguity, imbalance, pixel_noise,
      seed);
  return labels_per_image == 1 ? one_label : one_label + fmt::format("labels {}\n", labels_per_image);
}

}  // namespace settrain
