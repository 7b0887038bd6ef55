#include "src/inference/predict.h"

#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <numeric>
#include <unordered_map>
#include <utility>

#include "datasets/image_files.h"
#include "models/model.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

// The batches leave out images that cannot be read, and name them.
Loader image_loader(const TrainedModel& model, const FileTable& files) {
  const DecodeOptions decode = decode_options(model);
  const ImageFileOptions options{.grey = decode.channels == 1, .apply_orientation = decode.apply_orientation};
  Split images{"images", std::make_shared<ImageFiles>(files, options), {}, {}};
  images.ids.resize(static_cast<size_t>(files.size()));
  std::iota(images.ids.begin(), images.ids.end(), 0);
  images.labels.resize(images.ids.size());  // nothing reads them
  Dataset sizes;                            // a loader asks a data set for its sizes only
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
      : model_(model),
        kind_(class_facts(model.card).probability),
        images_(images),
        groups_(groups),
        maker_(maker),
        writer_(writer) {
    if (!groups) return;
    missing_.resize(groups->names.size());
    for (const int64_t group : groups->group_of) ++missing_[static_cast<size_t>(group)];
  }

  // `scores` [batch.size(), classes] on any device; undefined for an empty batch.
  void add(const Batch& batch, const at::Tensor& scores) {
    at::Tensor logits;
    if (scores.defined()) logits = rule_scores(model_, scores);
    Errors errors;
    for (const SkippedImage& image : batch.skipped) errors.emplace(image.id, &image.reason);
    if (groups_) {
      add_to_groups(batch, logits, errors);
    } else {
      add_rows(batch, logits, errors);
    }
  }

 private:
  using Errors = std::unordered_map<int64_t, const std::string*>;  // by the image's number

  // A group some of whose images have been seen.
  struct Group {
    GroupSum sum{};
    int64_t unreadable = 0;
    std::string error{};  // of the first unreadable image
  };

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

  // Adds a row of zeros for each image that was left out, since randomised rules draw by an image's number.
  static at::Tensor with_gaps(const Batch& batch, const at::Tensor& logits) {
    if (batch.skipped.empty()) return logits;
    const at::Tensor rows = batch.sample_ids.sub(batch.first_position);
    return at::zeros({end_of(batch) - batch.first_position, logits.size(1)}, logits.options())
        .index_copy_(0, rows, logits);
  }

  void add_to_groups(const Batch& batch, const at::Tensor& logits, const Errors& errors) {
    at::Tensor logs;
    if (logits.defined()) logs = log_probabilities(logits, kind_);
    int64_t read = 0;
    for (int64_t i = batch.first_position; i < end_of(batch); ++i) {
      const int64_t number = groups_->group_of[static_cast<size_t>(i)];
      Group& group = started_[number];
      if (const auto error = errors.find(i); error != errors.end()) {
        log::warning(fmt::format("[predict] {}", printable(*error->second)));
        if (group.unreadable++ == 0) group.error = *error->second;
      } else {
        group.sum.add(logs[read++]);
      }
      if (--missing_[static_cast<size_t>(number)] == 0) write_group(number);
    }
  }

  void write_group(int64_t number) {
    const Group group = std::move(started_.extract(number).mapped());
    Prediction row{.name = groups_->names[static_cast<size_t>(number)],
                   .images = group.sum.images,
                   .unreadable = group.unreadable,
                   .error = group.error};
    if (row.images > 0) row.sets = std::move(maker_(group.sum.scores(kind_), number).front());
    writer_.write(row);
  }

  const TrainedModel& model_;
  ProbabilityKind kind_;
  const FileTable& images_;
  const std::optional<ImageGroups>& groups_;
  const SetMaker& maker_;
  PredictionWriter& writer_;
  std::vector<int64_t> missing_{};                // [groups] images that have not been seen
  std::unordered_map<int64_t, Group> started_{};  // by the group's number
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
