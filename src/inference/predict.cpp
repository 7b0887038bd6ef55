#include "src/inference/predict.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "datasets/image_files.h"
#include "models/model.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/inference/group_sums.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

// Images that cannot be read are left out of the batches, which name them.
Loader image_loader(const TrainedModel& model, const FileTable& files) {
  const DecodeOptions decode = decode_options(model);
  const ImageFileOptions options{.grey = decode.channels == 1, .apply_orientation = decode.apply_orientation};
  Split images{"images", std::make_shared<ImageFiles>(files, options), {}, {}};
  images.ids.resize(static_cast<size_t>(files.size()));
  std::iota(images.ids.begin(), images.ids.end(), 0);
  images.labels.resize(images.ids.size());  // of no meaning
  Dataset sizes;                            // all that a loader asks of a data set
  sizes.height = model.card.image_height;
  sizes.width = model.card.image_width;
  LoaderContext context = model.loader;
  context.options.on_bad_image = "skip";
  context.skipped = std::make_shared<SkippedImages>(/*logs=*/false);
  return evaluation_loader(sizes, images, context, model.view_use);
}

// Turns batches of scores into rows.
class RowMaker {
 public:
  RowMaker(const TrainedModel& model, const FileTable& images, const std::optional<ImageGroups>& groups,
           const SetMaker& maker, PredictionWriter& writer)
      : model_(model), images_(images), groups_(groups), maker_(maker), writer_(writer) {
    if (groups) sums_.emplace(*groups, class_facts(model.card).probability);
  }

  /// `scores` [batch.size(), classes] on any device; undefined for an empty batch.
  void add(const Batch& batch, const at::Tensor& scores) {
    at::Tensor logits;
    if (scores.defined()) logits = rule_scores(model_, scores);
    std::unordered_map<int64_t, const std::string*> errors;
    for (const SkippedImage& image : batch.skipped) errors.emplace(image.id, &image.reason);
    if (sums_) {
      add_to_groups(batch, logits, errors);
    } else {
      add_rows(batch, logits, errors);
    }
  }

 private:
  using Errors = std::unordered_map<int64_t, const std::string*>;  // by the image's number

  static int64_t end_of(const Batch& batch) { return batch.first_position + batch.size() + std::ssize(batch.skipped); }

  void add_rows(const Batch& batch, const at::Tensor& logits, const Errors& errors) {
    std::vector<std::vector<PredictedSet>> sets;
    if (logits.defined()) sets = maker_(with_gaps(batch, logits), batch.first_position);
    for (int64_t i = batch.first_position; i < end_of(batch); ++i) {
      Prediction row{.name = images_.path(i).string()};
      if (const auto error = errors.find(i); error != errors.end()) {
        row.error = *error->second;
      } else {
        row.sets = std::move(sets[static_cast<size_t>(i - batch.first_position)]);
      }
      writer_.write(row);
    }
  }

  // A row for every image, also for those that are left out: what randomised rules draw follows from its number.
  static at::Tensor with_gaps(const Batch& batch, const at::Tensor& logits) {
    if (batch.skipped.empty()) return logits;
    const at::Tensor rows = batch.sample_ids.sub(batch.first_position);
    return at::zeros({end_of(batch) - batch.first_position, logits.size(1)}, logits.options())
        .index_copy_(0, rows, logits);
  }

  void add_to_groups(const Batch& batch, const at::Tensor& logits, const Errors& errors) {
    at::Tensor log_probabilities;
    if (logits.defined()) log_probabilities = sums_->log_probabilities(logits);
    int64_t read = 0;
    for (int64_t i = batch.first_position; i < end_of(batch); ++i) {
      const auto error = errors.find(i);
      if (error != errors.end()) log::warning(fmt::format("[predict] {}", printable(*error->second)));
      const bool is_complete = error != errors.end() ? sums_->add(i, *error->second)
                                                     : sums_->add(i, log_probabilities[read++].const_data_ptr<double>(),
                                                                  log_probabilities.size(1));
      if (is_complete) write_group(i);
    }
  }

  void write_group(int64_t last_image) {
    const GroupSums::Group group = sums_->take(last_image);
    const int64_t number = groups_->group_of[static_cast<size_t>(last_image)];
    Prediction row{.name = groups_->names[static_cast<size_t>(number)],
                   .images = group.images,
                   .unreadable = group.unreadable,
                   .error = group.error};
    if (group.images > 0) row.sets = std::move(maker_(sums_->scores_of(group), number).front());
    writer_.write(row);
  }

  const TrainedModel& model_;
  const FileTable& images_;
  const std::optional<ImageGroups>& groups_;
  const SetMaker& maker_;
  PredictionWriter& writer_;
  std::optional<GroupSums> sums_{};
};

}  // namespace

int64_t predict(const TrainedModel& model, const FileTable& images, const std::optional<ImageGroups>& groups,
                const SetMaker& maker, PredictionWriter& writer, ProgressBar& bar) {
  c10::InferenceMode inference;
  Loader loader = image_loader(model, images);
  RowMaker rows(model, images, groups, maker, writer);
  int64_t unreadable = 0;
  Progress progress;
  progress.stage = "[predict]";
  progress.total = images.size();
  loader.start_epoch(0);
  for (Batch batch; loader.next(batch);) {
    at::Tensor scores;
    if (batch.size() > 0) scores = score_batch(*model.model, batch, model.policy, model.crop_average);
    unreadable += std::ssize(batch.skipped);
    progress.done += batch.size() + std::ssize(batch.skipped);
    bar.update(progress);
    if (writer.is_shown()) bar.hide();
    rows.add(batch, scores);
    if (writer.is_shown()) bar.update(progress);
    throw_if_interrupted();
  }
  bar.hide();
  writer.finish();
  return unreadable;
}

}  // namespace settrain
