#include "src/loader/data_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/core/error.h"
#include "src/core/process.h"
#include "src/loader/pipeline.h"
#include "src/loader/sampler.h"

namespace settrain {
namespace {

constexpr double kMostInABatch = 1 << 20;
constexpr const char* kNone = "none";  // pixels stay in [0, 1]

// With which others trained networks whose weights they publish, whatever their data: to [-1, 1], as timm's
// transformers; OpenAI's for CLIP, which all of CLIP's successors took over; and (pixel - 127) / 128, as TensorFlow's
// EfficientNet-Lite.
const std::vector<NamedNormalisation>& published_statistics() {
  constexpr float kLiteMean = 127.0F / 255, kLiteStd = 128.0F / 255;
  static const std::vector<NamedNormalisation> all{
      {"half", {{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}}},
      {"clip", {{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}}},
      {"efficientnet_lite", {{kLiteMean, kLiteMean, kLiteMean}, {kLiteStd, kLiteStd, kLiteStd}}}};
  return all;
}

Registry<NamedNormalisation> all_statistics(const DatasetRegistry& datasets) {
  Registry<NamedNormalisation> all("normalisation");
  all.add({kNone, {}});
  for (const DatasetEntry& entry : datasets.entries()) {
    for (const NamedNormalisation& named : entry.statistics) all.add(named);
  }
  for (const NamedNormalisation& named : published_statistics()) all.add(named);
  return all;
}

}  // namespace

config::Keys loader_keys(const DatasetRegistry& datasets) {
  using config::key;
  using O = LoaderOptions;
  std::vector<std::string> normalisations = normalisation_names(datasets);
  normalisations.insert(normalisations.begin(), "auto");
  config::Keys keys = {
      key("batch_size", &O::batch_size, 128, "Images in a training batch.")
          .at_least(1)
          .at_most(kMostInABatch)
          .in("images"),
      key("eval_batch_size", &O::eval_batch_size, O::kAuto, "Images in an evaluation batch; auto is batch_size.")
          .at_least(1)
          .at_most(kMostInABatch)
          .in("images")
          .word("auto", O::kAuto),
      key("workers", &O::workers, O::kAuto,
          "Threads that load images. auto: the cores that are not compute threads, at least one; more threads than "
          "that slow training down. Results do not depend on it.")
          .at_least(1)
          .at_most(1024)
          .in("threads")
          .word("auto", O::kAuto)
          .free(),
      key("prefetch", &O::prefetch, 4,
          "Batches prepared ahead of the one in use; at most so many loader threads are busy.")
          .at_least(1)
          .at_most(1024)
          .in("batches")
          .free(),
      key("drop_last", &O::drop_last, false,
          "Drop the last training batch of an epoch if it is smaller than batch_size."),
      key("sampler", &O::sampler, Sampling::kUniform,
          "Which training images an epoch takes, as many as there are. uniform: every image once. The others draw a "
          "class for every place and take its images in turn, over and over (Kang et al., ICLR 2020): class_balanced "
          "draws all classes with equal probability; square_root in proportion to the square root of their numbers "
          "of images; progressive in proportion to their numbers of images in the first epoch, and ever more equally "
          "after that. An image's class is its first label, label noise included. A loss' class weights, margins and "
          "priors still follow the numbers of images.")
          .one_of({Sampling::kUniform, Sampling::kClassBalanced, Sampling::kSquareRoot, Sampling::kProgressive}),
      key("augmentation.repeats", &O::repeats, 1,
          "How often an epoch takes each of its training images, one time after the other and augmented anew (repeated "
          "augmentation, Hoffer et al., CVPR 2020). An epoch still has as many images as the split, so it takes 1/repeats "
          "of them.")
          .at_least(1)
          .at_most(64)
          .in("times"),
      key("normalisation", &O::normalisation, "auto",
          "Per-channel mean and standard deviation with which pixels are normalised; none leaves them in [0, 1]. auto: "
          "those that model.pretrained was trained with, by the file where it is settrain's, and else by what is known "
          "of the model's published weights; else the data set's usual ones, which images of your own do not have: their "
          "pixels stay in [0, 1]. The run's checkpoints keep them.")
          .one_of(std::move(normalisations)),
      key("on_bad_image", &O::on_bad_image, "error",
          "Handling of an image that cannot be read: error stops the run and names the file, before the first step where the file is empty, or no image in a validation or test split of up to 5,000; skip leaves the "
          "image out, in training and evaluation, and lists it in the log. A training batch of which no image is "
          "left, or a single one where batch norm cannot be trained on one, is left out. A hundred training images "
          "in a row that cannot be read stop the run. A missing file, such as the target of a broken link, stops the run before "
          "training in both cases, since data are identified by the sizes of their files.")
          .one_of({"error", "skip"}),
      key("on_device", &O::on_device, config::Switch::kAuto,
          "Whether the images stay in the memory of the model's device, as bytes, and are cropped, flipped and "
          "normalised there: on or off; auto: on a GPU, where the data set holds them in memory (cifar100, "
          "fashion_mnist), the pipeline resizes none, no augmentation changes pixels (data.augment and its like, which the "
          "CPU does), and they take at most 2 GiB. Results do not depend on it.",
          config::auto_or("on", "off"))
          .free(),
      key("cache_features", &O::cache_features, config::Switch::kAuto,
          "Whether the features of a frozen body are computed once and read from a file in each epoch: on or off; auto: where images come the same in every epoch (no random crop, flip, "
          "augmentation or mix) and the run has two epochs or more. The files are in $SETTRAIN_CACHE/features where that is set, and "
          "runs share them; else in the run's folder, until the training has ended. Results are the same to the bit, but "
          "for those of a smaller last training batch, whose features are made in a batch of full size.",
          config::auto_or("on", "off")),
      key("cache_precision", &O::cache_precision, "float32",
          "How the files of data.cache_features hold numbers. bfloat16 halves the files and rounds features to "
          "eight bits, in training and in the evaluations after epochs; the results at the end are of the images.")
          .one_of({"float32", "bfloat16"}),
  };
  return config::joined(PipelineOptions::keys(), AugmentationOptions::keys(), keys);
}

int64_t LoaderOptions::resolved_workers(int64_t busy_threads) const {
  if (workers != kAuto) return workers;
  return std::max<int64_t>(1, own_cores() - busy_threads);
}

std::vector<std::string> normalisation_names(const DatasetRegistry& datasets) {
  return all_statistics(datasets).names();
}

Normalisation normalisation_for(const DatasetRegistry& datasets, const std::string& name, const Dataset& dataset) {
  const std::string& chosen = name == "auto" ? dataset.normalisation : name;
  Normalisation statistics = all_statistics(datasets).at(chosen).statistics;
  if (chosen == kNone) {
    statistics.mean.assign(static_cast<size_t>(dataset.channels), 0.0F);
    statistics.std.assign(static_cast<size_t>(dataset.channels), 1.0F);
  }
  if (static_cast<int64_t>(statistics.mean.size()) != dataset.channels) {
    throw KeyError("data.normalisation",
                   fmt::format("'{}' is for images of {} channels, those of '{}' have {}; choose another, or auto",
                               chosen, statistics.mean.size(), dataset.name, dataset.channels));
  }
  return statistics;
}

std::string normalisation_name(const DatasetRegistry& datasets, const Normalisation& statistics) {
  const auto& [mean, std] = statistics;
  const auto all_are = [](const std::vector<float>& values, float value) {
    return std::ranges::all_of(values, [value](float other) { return other == value; });
  };
  if (all_are(mean, 0) && all_are(std, 1)) return kNone;
  const Registry<NamedNormalisation> all = all_statistics(datasets);
  for (const NamedNormalisation& named : all.entries()) {
    if (named.statistics == statistics) return named.name;
  }
  return fmt::format("mean [{}] and standard deviation [{}]", fmt::join(mean, ", "), fmt::join(std, ", "));
}

}  // namespace settrain
