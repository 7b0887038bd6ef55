// Features of images in files, for heads that are trained without a body.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/entries.h"
#include "datasets/feature_file.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

struct FeatureOptions {
  std::string train, val, test;

  static config::Keys keys();
};

config::Keys FeatureOptions::keys() {
  using config::key;
  using O = FeatureOptions;
  return {
      key("train", &O::train, "",
          "File with the features of the training images, as `settrain embed` writes it: .safetensors with the tensors "
          "features [images, width] of floats and labels [images] of integers, and class_names in the metadata; or "
          ".npz with arrays of these names. They are taken as they are, without pipeline or normalisation.")
          .not_empty(),
      key("val", &O::val, "", "The same for the validation images. Where it is empty, data.val_size holds some out."),
      key("test", &O::test, "", "The same for the test images. Where it is empty, there is no test split.")};
}

std::shared_ptr<const FeatureRows> read_rows(const char* key, const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw KeyError(key, fmt::format("no file '{}'", path));
  FeatureFile file = read_feature_file(path);
  if (file.labels.empty())
    throw DataError(fmt::format("'{}' ({}): has no labels; a head is trained and measured on labels", path, key));
  return std::make_shared<const FeatureRows>(path, std::move(file));
}

int64_t classes_in(const std::vector<int64_t>& labels) {
  return *std::ranges::max_element(labels) + 1;
}

Dataset load_features(const FeatureOptions& options, const SplitOptions& split) {
  if (!options.val.empty() && split.val_size > 0)
    throw KeyError("data.val_size", "holds out training images, and data.val names a file; set one of both");
  const auto train = read_rows("data.train", options.train);
  const auto val = options.val.empty() ? nullptr : read_rows("data.val", options.val);
  const auto test = options.test.empty() ? nullptr : read_rows("data.test", options.test);

  Dataset dataset;
  dataset.name = "features";
  dataset.class_names = train->file().class_names;
  int64_t classes = classes_in(train->file().labels);
  std::string digests = train->file().digest;
  for (const auto& other : {val, test}) {
    digests += "\n" + (other ? other->file().digest : "");
    if (!other) continue;
    check_belongs(train->path(), train->file(), other->path(), other->file());
    if (dataset.class_names.empty()) dataset.class_names = other->file().class_names;
    classes = std::max(classes, classes_in(other->file().labels));
  }
  for (int64_t c = std::ssize(dataset.class_names); c < classes; ++c)
    dataset.class_names.push_back(fmt::format("{}", c));
  if (dataset.num_classes() < 2)
    throw DataError(fmt::format("'{}': all labels are 0; a classifier needs two classes", options.train));
  dataset.channels = dataset.height = 1;  // a row of numbers
  dataset.width = train->file().features->width();
  dataset.features_model = train->file().model;
  dataset.normalisation = "none";
  HeldOut held_out = hold_out(train->file().labels, dataset.num_classes(), split);
  dataset.train = make_split("train", train, std::move(held_out.train), train->file().labels);
  dataset.val = val ? make_split("val", val, val->file().labels)
                    : make_split("val", train, std::move(held_out.val), train->file().labels);
  dataset.test = test ? make_split("test", test, test->file().labels) : make_split("test", train, {}, {});
  dataset.digest = sha256(fmt::format("features\n{}\n{}", digests, split.recipe()));
  return dataset;
}

}  // namespace

DatasetEntry features_entry() {
  return {.name = "features",
          .help =
              "Features of images in files, which a trained network made once; for model.name head_only, so that a "
              "head is trained in seconds.",
          .keys = config::joined(FeatureOptions::keys(), SplitOptions::keys(/*default_val_size=*/0)),
          .make = [](const config::Config& config) {
            return load_features(config.read<FeatureOptions>("data"), config.read<SplitOptions>("data"));
          }};
}

}  // namespace settrain
