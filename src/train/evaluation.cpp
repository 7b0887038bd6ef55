#include "src/train/evaluation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "losses/ops/loss_input.h"
#include "metrics/entries.h"
#include "models/model.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/metric_name.h"
#include "src/eval/crop_average.h"
#include "src/eval/evaluator.h"
#include "src/loader/loader.h"

namespace settrain {
namespace {

size_t truth_index(const std::string& split) {
  return split == "train" ? 0 : split == "val" ? 1 : split == "test" ? 2 : 3;
}

std::vector<MetricValue> bayes_values(const config::Config& config, const Dataset& dataset, const std::string& split) {
  const std::vector<float>& probabilities = dataset.truth->probabilities[truth_index(split)];
  const int64_t classes = dataset.num_classes();
  const at::Tensor known = at::from_blob(const_cast<float*>(probabilities.data()),
                                         {static_cast<int64_t>(probabilities.size()) / classes, classes}, at::kFloat);
  return bayes_accuracy(known, config.read<TopkAccuracyOptions>("eval").top_k,
                        config.read<AverageKOptions>("eval").average_k);
}

// eval.threshold_from, or "same" where no average-K sets are evaluated.
std::string threshold_source(const config::Config& config) {
  const auto options = config.read<AverageKOptions>("eval");
  return options.average_k.empty() ? "same" : options.threshold_from;
}

// The split whose images calibrate set rules before they judge `split`; empty: half of its own images do.
std::string calibrates(const config::Config& config, const std::string& split, bool has_calibration) {
  if (split != "test" || config.get<config::Texts>("eval.rules").empty()) return "";
  return has_calibration ? "calibration" : "val";
}

// A split is scored once, though it may be evaluated, set the thresholds of others, and calibrate.
class ScoredSplits {
 public:
  ScoredSplits(const Experiment& run, ViewUse use, ProgressBar& bar) : run_(run), use_(use), bar_(bar) {}

  const SplitScores& of(const std::string& name) { return of(name, split_named(run_.dataset, name)); }

  // The scores that set average-K's thresholds; null: the split's own.
  const at::Tensor* thresholds() {
    if (threshold_source(run_.config) == "val") return &of("val").scores;
    return run_.threshold_split ? &of("", *run_.threshold_split).scores : nullptr;
  }

  // The scores that calibrate set rules before they judge the split; null: half of its own images.
  const SplitScores* calibration_for(const std::string& split) {
    const std::string name = calibrates(run_.config, split, run_.dataset.calibration.size() > 0);
    return name.empty() ? nullptr : &of(name);
  }

 private:
  const SplitScores& of(const std::string& name, const Split& split) {
    const auto found = scored_.find(name);
    if (found != scored_.end()) return found->second;
    return scored_.emplace(name, score_split(run_, split, use_, bar_)).first->second;
  }

  const Experiment& run_;
  ViewUse use_;
  ProgressBar& bar_;
  std::map<std::string, SplitScores> scored_{};  // by the split's name; "" for the folder of eval.threshold_from
};

struct ScoredBatch {
  at::Tensor scores, labels;   // [batch, classes] float32 on the model's device, [batch] int64
  at::Tensor label_sets = {};  // [batch, classes] uint8 there, 1 for labels; undefined in a split without label sets
};

// [batch, classes] uint8 on the device of `scores`.
at::Tensor batch_label_sets(const Batch& batch, const at::Tensor& scores) {
  const LabelSets sets{batch.set_offsets.to(scores.device()), batch.set_classes.to(scores.device())};
  return label_indicator(sets, {}, scores).to(at::kByte);
}

// A batch of every process that has one with images, in the order of the ranks. `counts`: [world, ...], of images
// first.
std::vector<ScoredBatch> gathered(ProcessGroup& group, const ScoredBatch& mine, const at::Tensor& counts) {
  const at::Tensor images = counts.select(1, 0);
  const int64_t most = images.max().item<int64_t>();
  if (most == 0) return {};
  if (group.world_size() == 1) return {mine};
  const at::Tensor scores = at::zeros({most, mine.scores.size(1)}, mine.scores.options());
  const at::Tensor labels = at::zeros({most}, at::kLong);
  scores.narrow(0, 0, mine.scores.size(0)).copy_(mine.scores);
  if (mine.labels.defined()) labels.narrow(0, 0, mine.labels.size(0)).copy_(mine.labels);
  const at::Tensor all_scores = group.all_gather(scores), all_labels = group.all_gather(labels);
  at::Tensor all_sets;
  if (mine.label_sets.defined()) {
    const at::Tensor sets = at::zeros({most, mine.scores.size(1)}, mine.label_sets.options());
    sets.narrow(0, 0, mine.label_sets.size(0)).copy_(mine.label_sets);
    all_sets = group.all_gather(sets);
  }
  std::vector<ScoredBatch> all;
  for (int64_t rank = 0; rank < group.world_size(); ++rank) {
    const int64_t count = images[rank].item<int64_t>();
    if (count == 0) continue;
    all.push_back({all_scores[rank].narrow(0, 0, count), all_labels[rank].narrow(0, 0, count)});
    if (all_sets.defined()) all.back().label_sets = all_sets[rank].narrow(0, 0, count);
  }
  return all;
}

}  // namespace

at::Tensor score_batch(Model& model, const Batch& batch, const ComputePolicy& policy, const CropAverage& average) {
  const at::Tensor scores = forward(model, batch.images, policy).prediction();
  return batch.views == 1 ? scores : average_crops(scores, batch.views, average);
}

SplitScores score_split(const Experiment& run, const Split& split, ViewUse use, ProgressBar& bar) {
  c10::InferenceMode inference;
  run.model->eval();
  Loader loader = evaluation_loader(run.dataset, split, run.loader, use);
  const int64_t classes = run.dataset.num_classes();
  const bool has_label_sets = !split.label_sets.empty();
  ScoreCollector collector(split.size(), classes, run.device, at::kFloat, has_label_sets);
  ProcessGroup& group = *run.group;
  const CropAverage crop_average{run.eval.crop_average, run.eval.resolved_crop_average_k(run.config),
                                 run.loss->score_scale()};
  int64_t left_out = 0;
  Progress progress{"[eval] " + split.name, 0, split.size(), 0, ""};
  loader.start_epoch(0);
  for (int64_t first = 0; first < loader.batches_per_epoch(); first += group.world_size()) {
    Batch batch;
    loader.next(batch);
    ScoredBatch mine{at::empty({0, classes}, at::TensorOptions(run.device).dtype(at::kFloat)), batch.labels};
    if (has_label_sets) mine.label_sets = at::empty({0, classes}, mine.scores.options().dtype(at::kByte));
    if (batch.size() > 0) {
      mine.scores = score_batch(*run.model, batch, run.policy, crop_average);
      if (has_label_sets) mine.label_sets = batch_label_sets(batch, mine.scores);
    }
    const at::Tensor counts =
        group.all_gather(at::tensor({batch.size(), std::ssize(batch.skipped), int64_t{interrupted()}}));
    for (const ScoredBatch& scored : gathered(group, mine, counts))
      collector.add(scored.scores, scored.labels, scored.label_sets);
    left_out += counts.select(1, 1).sum().item<int64_t>();
    progress.done += counts.slice(1, 0, 2).sum().item<int64_t>();
    bar.update(progress);
    if (const int64_t signal = counts.select(1, 2).max().item<int64_t>()) throw Interrupted(static_cast<int>(signal));
  }
  bar.hide();
  if (left_out == split.size()) {
    throw DataError(fmt::format("no image of the split '{}' could be read; the log names them", split.name));
  }
  return collector.finish(left_out);
}

std::set<std::string> splits_to_score(const config::Config& config, const std::vector<std::string>& splits,
                                      bool has_calibration) {
  std::set<std::string> names(splits.begin(), splits.end());
  if (!splits.empty() && threshold_source(config) == "val") names.insert("val");
  for (const std::string& split : splits) {
    if (const std::string name = calibrates(config, split, has_calibration); !name.empty()) names.insert(name);
  }
  return names;
}

std::set<std::string> splits_behind(const std::string& metric, const config::Config& config, bool has_calibration) {
  const size_t slash = metric.find('/');
  const std::string split = metric.substr(0, slash), name = metric.substr(slash + 1);
  std::set<std::string> names{split};
  const auto sizes = config.read<AverageKOptions>("eval").average_k;
  // A subset's thresholds are always its own.
  const auto judges = [&name](double k) {
    return !name.starts_with(kSubsetPrefix) && name.find(average_k_name(k)) != std::string::npos;
  };
  if (const std::string from = threshold_source(config); from != "same" && std::ranges::any_of(sizes, judges)) {
    names.insert(from == "val" ? from : "threshold");
  }
  const bool is_of_rule = name.find('@') != std::string::npos;
  if (is_of_rule && split == "test") names.insert(has_calibration ? "calibration" : "val");
  return names;
}

int64_t samples_to_score(const config::Config& config, const Dataset& dataset,
                         const std::optional<Split>& threshold_split, const std::vector<std::string>& splits) {
  int64_t samples = threshold_split && !splits.empty() ? threshold_split->size() : 0;
  for (const std::string& name : splits_to_score(config, splits, dataset.calibration.size() > 0)) {
    samples += split_named(dataset, name).size();
  }
  return samples;
}

JudgedScores score_with_thresholds(const Experiment& run, const std::string& split, ProgressBar& bar) {
  ScoredSplits scored(run, run.eval.view_use(), bar);
  JudgedScores scores{scored.of(split)};
  if (const at::Tensor* thresholds = scored.thresholds()) scores.thresholds = *thresholds;
  if (const SplitScores* calibration = scored.calibration_for(split)) scores.calibration = *calibration;
  return scores;
}

std::vector<SplitResult> evaluate_splits(const Experiment& run, const std::vector<std::string>& splits, ViewUse use,
                                         ProgressBar& bar) {
  if (splits.empty()) return {};  // nor is a pass needed for thresholds
  ScoredSplits scored(run, use, bar);
  const at::Tensor* thresholds = scored.thresholds();
  std::vector<SplitResult> results;
  for (const std::string& name : splits) {
    const SplitScores* calibration = scored.calibration_for(name);
    const SplitScores& scores = scored.of(name);
    try {
      results.push_back({name, run.evaluator->evaluate(scores, thresholds, calibration)});
    } catch (const NumericalError& problem) {
      throw NumericalError(fmt::format("the split {}: {}", name, problem.what()));
    }
  }
  gather_skipped_images(*run.group, *run.loader.skipped);
  return results;
}

void gather_skipped_images(ProcessGroup& group, SkippedImages& skipped) {
  if (group.world_size() == 1) return;
  const nlohmann::json unreported{{"images", skipped.take_unreported()},
                                  {"batches", skipped.take_unreported_batches()}};
  const std::string mine = unreported.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const std::string& other : group.all_gather(mine)) {
    if (!group.is_first()) continue;
    const nlohmann::json theirs = nlohmann::json::parse(other);
    for (const auto& [image, reason] : theirs.at("images").items()) skipped.add(image, reason.get<std::string>());
    skipped.add_batches_of_one(theirs.at("batches").get<int64_t>());
  }
}

std::vector<ResultsColumn> results_columns(const config::Config& config, const Dataset& dataset,
                                           const LabelNoiseReport& label_noise,
                                           const std::vector<SplitResult>& results) {
  std::vector<ResultsColumn> columns;
  for (const SplitResult& split : results) {
    columns.push_back({split.split, split.result.values});
    // P(y | x) knows nothing of label noise, so it says nothing of the labels that were trained on.
    const bool noisy = split.split == "train" && label_noise.kind != "none";
    if (dataset.truth && !noisy)
      columns.push_back({split.split + " Bayes", bayes_values(config, dataset, split.split)});
  }
  return columns;
}

}  // namespace settrain
