#include "src/train/training_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "datasets/image_files.h"
#include "src/core/error.h"
#include "src/train/evaluation.h"

namespace settrain {

bool has_batch_of_one(const Loader& training) {
  const int64_t batch_size = training.settings().batch_size;
  return batch_size == 1 || (training.size() % batch_size == 1 && !training.settings().drop_last);
}

void check_batches_of_one(const Experiment& run, const Loader& training) {
  if (!has_batch_of_one(training) || run.takes_one_image) return;
  constexpr const char* kReason =
      "The network cannot be trained on a batch of one image: one pixel is left of it at a batch norm, which needs "
      "several values in each channel";
  const int64_t batch_size = training.settings().batch_size, images = training.size();
  if (images == 1) throw DataError(fmt::format("there is a single training image. {}. Take more images", kReason));
  if (batch_size == 1) {
    throw DataError(fmt::format(
        "every training batch has one image (data.batch_size: 1). {}. Set data.batch_size to 2 or more, or take larger "
        "images",
        kReason));
  }
  int64_t other = batch_size + 1;
  while (images % other == 1) ++other;
  throw DataError(fmt::format(
      "the last training batch of every epoch has one image, since {} images in batches of {} (data.batch_size) leave "
      "one over. {}. Set data.drop_last: true, which leaves the last batch out, or another data.batch_size, such as {}, "
      "or take larger images",
      images, batch_size, kReason, other));
}

void check_training_data(const Experiment& run, const std::vector<std::string>& read_too) {
  const Dataset& data = run.dataset;
  const auto has_image = [](int64_t count) { return count > 0; };
  if (run.train.epochs > 0 && std::ranges::count_if(run.train_counts, has_image) == 1) {
    const auto one = std::ranges::find_if(run.train_counts, has_image) - run.train_counts.begin();
    throw DataError(
        fmt::format("all {} training images are of one class, {} (there are {}): a classifier needs images of at "
                    "least two",
                    data.train.size(), data.class_names[static_cast<size_t>(one)], data.num_classes()));
  }
  const bool has_calibration = data.calibration.size() > 0;
  std::set<std::string> names = splits_to_score(run.config, run.eval.splits, has_calibration);
  names.merge(splits_to_score(run.config, run.eval.during_training, has_calibration));
  names.insert("calibration");
  names.insert(read_too.begin(), read_too.end());
  if (run.train.epochs > 0) names.insert("train");
  std::vector<const Split*> splits;
  for (const char* name : {"train", "val", "calibration", "test"}) {
    if (names.contains(name)) splits.push_back(&split_named(data, name));
  }
  if (run.threshold_split) splits.push_back(&*run.threshold_split);
  refuse_unreadable(splits, run.loader.options.on_bad_image == "skip");
}

}  // namespace settrain
