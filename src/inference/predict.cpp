#include "src/inference/predict.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "models/model.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

// The batches leave out images that cannot be read, and name them.
Loader image_loader(const TrainedModel& model, const FileTable& files) {
  const Dataset images = images_of_files(model, files);
  LoaderContext context = model.loader;
  context.options.on_bad_image = "skip";
  context.skipped = std::make_shared<SkippedImages>(/*logs=*/false);
  return evaluation_loader(images, images.test, context, model.view_use);
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
    Answers answers;
    for (const SkippedImage& image : batch.skipped) answers.errors.emplace(image.id, image.reason);
    if (scores.defined()) add_finite(batch, rule_scores(model_, scores), answers);
    unanswered_ += std::ssize(answers.errors);
    if (groups_) {
      add_to_groups(batch, answers);
    } else {
      add_rows(batch, answers);
    }
  }

  // Images that could not be read, or whose scores are not finite.
  int64_t unanswered() const { return unanswered_; }

 private:
  // A batch's results.
  struct Answers {
    at::Tensor logits{}, numbers{};                     // [images, classes], [images]; undefined where there are none
    std::unordered_map<int64_t, std::string> errors{};  // of the other images, by their numbers
  };

  // A group some of whose images have been seen.
  struct Group {
    GroupSum sum{};
    int64_t unanswered = 0;
    std::string error{};  // of the first image without an answer
  };

  static int64_t end_of(const Batch& batch) { return batch.first_position + batch.size() + std::ssize(batch.skipped); }

  // The images with finite scores, and errors for the others.
  void add_finite(const Batch& batch, const at::Tensor& logits, Answers& answers) const {
    const at::Tensor finite = at::isfinite(logits).all(1);
    for (int64_t i = 0; i < finite.size(0); ++i) {
      if (finite[i].item<bool>()) continue;
      const int64_t number = batch.sample_ids[i].item<int64_t>();
      answers.errors.emplace(number, fmt::format("'{}': the model's scores are not finite", name_of(number)));
    }
    const at::Tensor kept = finite.nonzero().flatten();
    if (kept.size(0) == 0) return;
    answers.logits = logits.index_select(0, kept);
    answers.numbers = batch.sample_ids.index_select(0, kept);
  }

  std::string name_of(int64_t number) const { return images_.path(number).string(); }

  void add_rows(const Batch& batch, const Answers& answers) {
    std::vector<std::vector<PredictedSet>> sets;
    if (answers.logits.defined()) sets = maker_(with_gaps(batch, answers), batch.first_position);
    for (int64_t i = batch.first_position; i < end_of(batch); ++i) {
      Prediction row{.name = name_of(i)};
      if (const auto error = answers.errors.find(i); error != answers.errors.end()) {
        row.error = error->second;
      } else {
        row.sets = std::move(sets[static_cast<size_t>(i - batch.first_position)]);
      }
      writer_.write(row);
    }
  }

  // Adds a row of zeros for each image without an answer, since randomised rules draw by an image's number.
  static at::Tensor with_gaps(const Batch& batch, const Answers& answers) {
    if (answers.errors.empty()) return answers.logits;
    const at::Tensor rows = answers.numbers.sub(batch.first_position);
    return at::zeros({end_of(batch) - batch.first_position, answers.logits.size(1)}, answers.logits.options())
        .index_copy_(0, rows, answers.logits);
  }

  void add_to_groups(const Batch& batch, const Answers& answers) {
    at::Tensor logs;
    if (answers.logits.defined()) logs = log_probabilities(answers.logits, kind_);
    int64_t answered = 0;
    for (int64_t i = batch.first_position; i < end_of(batch); ++i) {
      const int64_t number = groups_->group_of[static_cast<size_t>(i)];
      Group& group = started_[number];
      if (const auto error = answers.errors.find(i); error != answers.errors.end()) {
        log::warning(fmt::format("[predict] {}", printable(error->second)));
        if (group.unanswered++ == 0) group.error = error->second;
      } else {
        group.sum.add(logs[answered++]);
      }
      if (--missing_[static_cast<size_t>(number)] == 0) write_group(number);
    }
  }

  void write_group(int64_t number) {
    const Group group = std::move(started_.extract(number).mapped());
    Prediction row{.name = groups_->names[static_cast<size_t>(number)],
                   .images = group.sum.images,
                   .unanswered = group.unanswered,
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
  int64_t unanswered_ = 0;
};

}  // namespace

int64_t predict(const TrainedModel& model, const FileTable& images, const std::optional<ImageGroups>& groups,
                const SetMaker& maker, PredictionWriter& writer, ProgressBar& bar) {
  c10::InferenceMode inference;
  Loader loader = image_loader(model, images);
  RowMaker rows(model, images, groups, maker, writer);
  Progress progress;
  progress.stage = "[predict]";
  progress.total = images.size();
  loader.start_epoch(0);
  for (Batch batch; loader.next(batch);) {
    at::Tensor scores;
    if (batch.size() > 0) scores = score_batch(*model.model, batch, model.policy, model.crop_average);
    progress.done += batch.size() + std::ssize(batch.skipped);
    bar.update(progress);
    if (writer.is_shown()) bar.hide();
    rows.add(batch, scores);
    if (writer.is_shown()) bar.update(progress);
    throw_if_interrupted();
  }
  bar.hide();
  writer.finish();
  return rows.unanswered();
}

std::string row_name(const FeatureFile& features, int64_t row) {
  return features.paths.empty() ? fmt::format("row {}", row) : features.paths[static_cast<size_t>(row)];
}

int64_t predict_features(const TrainedModel& model, const FeatureFile& features, const std::string& file,
                         const SetMaker& maker, PredictionWriter& writer, ProgressBar& bar) {
  constexpr int64_t kRows = 256;
  const c10::InferenceMode inference;
  const FeatureTable& table = *features.features;
  const std::string& known = model.card.features_model;
  if (!known.empty() && !features.model.empty() && known != features.model) {
    throw DataError(
        fmt::format("'{}': other weights made its features (SHA-256 {}) than those that the head was trained on ({})",
                    file, features.model, known));
  }
  if (known.empty() && !features.model.empty() && features.model != model.sha256) {
    log::warning(fmt::format(
        "[predict] '{}': other weights made its features (SHA-256 {}) than this model's ({}): the answers are right only "
        "where the layers below the head are the same",
        file, features.model, model.sha256));
  }
  int64_t unanswered = 0;
  Progress progress;
  progress.stage = "[predict]";
  progress.total = table.size();
  for (int64_t first = 0; first < table.size(); first += kRows) {
    const at::Tensor rows = at::empty({std::min(kRows, table.size() - first), table.width()}, at::kFloat);
    for (int64_t i = 0; i < rows.size(0); ++i)
      table.read(first + i, rows.mutable_data_ptr<float>() + i * table.width());
    at::Tensor scores;
    try {
      scores = rule_scores(model, forward(*model.model, rows, model.policy).prediction()).cpu();
    } catch (const ShapeError& problem) {
      throw DataError(fmt::format("'{}': its features are not those of this model: {}", file, problem.what()));
    }
    const at::Tensor finite = at::isfinite(scores).all(1);
    const auto sets = maker(scores.masked_fill(finite.logical_not().unsqueeze(1), 0), first);
    for (int64_t i = 0; i < rows.size(0); ++i) {
      Prediction row{.name = row_name(features, first + i)};
      if (finite[i].item<bool>()) {
        row.sets = sets[static_cast<size_t>(i)];
      } else {
        row.error = fmt::format("{}: the model's scores are not finite", row.name);
        ++unanswered;
      }
      writer.write(row);
    }
    progress.done += rows.size(0);
    if (!writer.is_shown()) bar.update(progress);
    throw_if_interrupted();
  }
  bar.hide();
  writer.finish();
  return unanswered;
}

}  // namespace settrain
