// Images made from a known P(y | x), so that the best possible accuracy is known too.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/synthetic_model.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/random.h"

namespace settrain {
namespace {

struct SyntheticOptions {
  int64_t num_classes = 0, group_size = 0;
  int64_t train_size = 0, val_size = 0, test_size = 0;
  int64_t image_size = 0, channels = 0;
  double ambiguity = 0, imbalance = 0;
  int64_t pixel_noise = 0;
  int64_t labels_per_image = 1;
  int64_t seed = 0;

  static constexpr int64_t kRunSeed = -1;  // the word auto
  static config::Keys keys();
  // A text that differs for any two data sets, for digests.
  std::string recipe() const;
  // A text that determines an image by its id and label.
  std::string recipe_of_images() const;
};

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
          "Probability that an image shows a class drawn from the label's superclass instead of the label's own "
          "class. It rises from half of this value in the first superclass to one and a half times in the last.")
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
          "losses on label sets; metrics use the image's own label, and those of eval.label_sets all.")
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

std::string SyntheticOptions::recipe_of_images() const {
  SyntheticOptions sized_alike = *this;
  sized_alike.train_size = sized_alike.val_size = sized_alike.test_size = 0;
  sized_alike.labels_per_image = 1;
  return sized_alike.recipe();
}

// The labels and cells of all samples, train first, then val, then test.
struct Samples {
  std::vector<int64_t> labels, cells;
};

std::vector<int64_t> training_labels(const SyntheticJoint& joint, int64_t size, uint64_t seed) {
  const std::vector<int64_t> counts = joint.counts(size);
  std::vector<int64_t> sorted;
  for (size_t c = 0; c < counts.size(); ++c) {
    sorted.insert(sorted.end(), static_cast<size_t>(counts[c]), static_cast<int64_t>(c));
  }
  std::vector<int64_t> labels;
  for (const int64_t i : permutation(size, seed, Stream::kSynthetic, kOrder)) {
    labels.push_back(sorted[static_cast<size_t>(i)]);
  }
  return labels;
}

Samples draw_samples(const SyntheticJoint& joint, const SyntheticOptions& options, uint64_t seed) {
  Samples samples;
  samples.labels = training_labels(joint, options.train_size, seed);
  const int64_t total = options.train_size + options.val_size + options.test_size;
  for (int64_t id = 0; id < total; ++id) {
    const auto words = random_words(seed, Stream::kSynthetic, static_cast<uint32_t>(id), 0, 0, kSample);
    if (id >= options.train_size) samples.labels.push_back(joint.draw_label(unit_double(words[0], words[1])));
    samples.cells.push_back(joint.draw_cell(samples.labels[static_cast<size_t>(id)], unit_double(words[2], words[3])));
  }
  return samples;
}

// The sample's label and the distinct labels among `extra` more draws from P(y | its cell).
std::vector<int64_t> label_set(int64_t id, int64_t label, const std::vector<double>& posterior, int64_t extra,
                               uint64_t seed) {
  std::vector<int64_t> set{label};
  for (int64_t i = 0; i < extra; ++i) {
    const auto words =
        random_words(seed, Stream::kSynthetic, static_cast<uint32_t>(id), static_cast<uint32_t>(i / 2), 0, kLabelSet);
    const double u = i % 2 == 0 ? unit_double(words[0], words[1]) : unit_double(words[2], words[3]);
    const int64_t other = draw_class(posterior, u);
    if (std::find(set.begin(), set.end(), other) == set.end()) set.push_back(other);
  }
  return set;
}

using Posteriors = std::vector<std::vector<double>>;  // [cells][classes] P(y | cell)

Posteriors posteriors_of(const SyntheticJoint& joint) {
  Posteriors posteriors;
  for (int64_t cell = 0; cell < joint.num_classes(); ++cell) posteriors.push_back(joint.label_given_cell(cell));
  return posteriors;
}

Split part_of(std::string name, std::shared_ptr<const ImageSource> images, const Samples& samples,
              const Posteriors& posteriors, const SyntheticOptions& options, int64_t first, int64_t size) {
  Split split{std::move(name), std::move(images), {}, {}};
  for (int64_t id = first; id < first + size; ++id) {
    const auto i = static_cast<size_t>(id);
    split.ids.push_back(id);
    split.labels.push_back(samples.labels[i]);
    if (options.labels_per_image == 1) continue;
    split.label_sets.add(label_set(id, samples.labels[i], posteriors[static_cast<size_t>(samples.cells[i])],
                                   options.labels_per_image - 1, static_cast<uint64_t>(options.seed)));
  }
  return split;
}

std::shared_ptr<const KnownTruth> truth_of(const Posteriors& posteriors, const std::vector<int64_t>& cells,
                                           const Dataset& dataset) {
  auto truth = std::make_shared<KnownTruth>();
  const std::array splits{&dataset.train, &dataset.val, &dataset.test};
  for (size_t s = 0; s < splits.size(); ++s) {
    for (const int64_t id : splits[s]->ids) {
      const std::vector<double>& row = posteriors[static_cast<size_t>(cells[static_cast<size_t>(id)])];
      truth->probabilities[s].insert(truth->probabilities[s].end(), row.begin(), row.end());
    }
  }
  return truth;
}

// All images of a cell are its template plus noise. Any two templates differ by more than twice the noise in some
// pixel, so an image reveals its cell, and P(y | x) = P(y | cell).
//
// Validation and test samples are drawn from the joint distribution, see SyntheticJoint. The training split's class
// counts follow the prior as closely as whole numbers can, with at least one sample of every class where `train_size`
// allows. A sample is a function of (seed, id); ids are counted through train, val and test. Images are made on demand.
//
// With labels_per_image = n > 1 a sample's label set holds its label and the distinct labels among n - 1 more draws
// from P(y | cell). `options.seed` is a real seed here. Throws DataError where two templates are too alike for
// `pixel_noise`.
Dataset make_synthetic(const SyntheticOptions& options) {
  const auto seed = static_cast<uint64_t>(options.seed);
  const SyntheticJoint joint(options.num_classes, options.group_size, options.ambiguity, options.imbalance);
  const Samples samples = draw_samples(joint, options, seed);
  const auto images = std::make_shared<SyntheticImages>(
      SyntheticImageOptions{options.image_size, options.channels, options.pixel_noise, seed}, options.num_classes,
      samples.cells, options.recipe_of_images());

  Dataset dataset;
  dataset.name = "synthetic";
  for (int64_t c = 0; c < options.num_classes; ++c) {
    dataset.class_names.push_back(fmt::format("class_{}", c));
    dataset.superclass_of.push_back(joint.group_of(c));
  }
  for (int64_t g = 0; g < joint.num_groups(); ++g) dataset.superclass_names.push_back(fmt::format("superclass_{}", g));
  dataset.channels = options.channels;
  dataset.height = dataset.width = options.image_size;
  dataset.normalisation = "none";
  const Posteriors posteriors = posteriors_of(joint);
  const auto part = [&](const char* name, int64_t first, int64_t size) {
    return part_of(name, images, samples, posteriors, options, first, size);
  };
  dataset.train = part("train", 0, options.train_size);
  dataset.val = part("val", options.train_size, options.val_size);
  dataset.test = part("test", options.train_size + options.val_size, options.test_size);
  dataset.truth = truth_of(posteriors, samples.cells, dataset);
  dataset.digest = sha256(options.recipe());
  return dataset;
}

}  // namespace

DatasetEntry synthetic_entry() {
  return {.name = "synthetic",
          .help = "Images made from a known P(y | x), so that the best possible accuracy is known.",
          .keys = SyntheticOptions::keys(),
          .make =
              [](const config::Config& config) {
                auto options = config.read<SyntheticOptions>("data");
                if (options.seed == SyntheticOptions::kRunSeed) options.seed = config.get<int64_t>("seed");
                return make_synthetic(options);
              },
          .facts =
              [](const config::Config& config) {
                const auto options = config.read<SyntheticOptions>("data");
                return DataFacts{.classes = options.num_classes,
                                 .train = options.train_size,
                                 .val = options.val_size,
                                 .test = options.test_size,
                                 .size = options.image_size,
                                 .channels = options.channels};
              }};
}

}  // namespace settrain
