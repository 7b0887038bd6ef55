#include "src/measure/cost/dry_run.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "datasets/calibration_split.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/text.h"
#include "src/measure/cost/throughput.h"
#include "src/train/evaluation.h"
#include "src/train/feature_cache.h"
#include "src/train/selection.h"
#include "src/train/step_result.h"
#include "src/train/training_checks.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Steps are measured for so long, or until there are so many.
constexpr double kSeconds = 5;
constexpr int64_t kLeastSteps = 6, kMostSteps = 200;
constexpr int64_t kWarmUp = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double measure_step(Throughput& throughput, ProgressBar& bar) {
  StepTimes times;
  Progress progress{"[dry run] steps", 0, 0, 0, ""};
  const auto start = Clock::now();
  throughput.take_from_loader(kWarmUp, kWarmUp, times);
  int64_t steps = 0;
  while (steps < kMostSteps && (steps < kLeastSteps || seconds_since(start) < kSeconds)) {
    throughput.take_from_loader(1, 0, times);
    ++steps;
    // So many will be measured, where they go on at this speed.
    const double all = kSeconds * static_cast<double>(kWarmUp + steps) / seconds_since(start);
    const int64_t measured = std::clamp(static_cast<int64_t>(all) - kWarmUp, std::max(steps, kLeastSteps), kMostSteps);
    progress.done = times.images;
    progress.total = times.images * measured / steps;
    bar.update(progress);
  }
  bar.hide();
  return median(times.seconds);
}

// Measures steps of a run whose loss is not finite: from weights of zero, which no step changes, so that a step costs
// what it would, and scores stay finite.
double measure_step_of_diverged(Experiment& run, std::optional<Throughput>& throughput, ProgressBar& bar) {
  {
    const c10::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state_dict(*run.model)) tensor.zero_();
    for (const auto& [name, tensor] : run.loss->state()) tensor.zero_();
  }
  const config::Config given = run.config;
  run.config = given.with("optimizer.lr", 0.0);
  throughput.reset();  // the memory of its optimizer is free before the next one takes as much
  throughput.emplace(run);
  const double seconds = measure_step(*throughput, bar);
  run.config = given;
  return seconds;
}

// Seconds to score an image: from the first batches of the largest split that is evaluated, which are the largest too.
double measure_scoring(const Experiment& run, ProgressBar& bar) {
  Split some = split_named(run.dataset, run.eval.splits.front());
  for (const config::Texts& splits : {run.eval.splits, run.eval.during_training}) {
    for (const std::string& name : splits) {
      if (split_named(run.dataset, name).size() > some.size()) some = split_named(run.dataset, name);
    }
  }
  const auto images = std::min<int64_t>(some.size(), 4 * run.loader.options.resolved_eval_batch_size());
  some.ids.resize(static_cast<size_t>(images));
  some.labels.resize(static_cast<size_t>(images));
  const auto start = Clock::now();
  score_split(run, some, ViewUse::kEvaluation, bar);
  return seconds_since(start) / static_cast<double>(images);
}

// Removes a file at the end of a scope.
struct Unlinked {
  std::string file;
  ~Unlinked() { unlink(file.c_str()); }
};

// Rows of zeros that take neither memory nor disk, for steps on features that nobody has made yet.
std::shared_ptr<const FeatureTable> zero_rows(int64_t rows, int64_t width) {
  std::string file = (fs::temp_directory_path() / "settrain-dry-run-XXXXXX").string();
  const Descriptor descriptor(mkstemp(file.data()));
  if (!descriptor.is_open()) throw file_error("make", file, errno);
  const Unlinked unlinked{file};
  if (ftruncate(descriptor.get(), rows * width * 4) != 0) throw file_error("enlarge", file, errno);
  return std::make_shared<FeatureTable>(file, 0, rows, width, FeatureTable::Stored::kFloat32);
}

SplitScores random_scores(int64_t samples, int64_t classes, at::Device device) {
  return {at::rand({samples, classes}, device),
          at::randint(classes, {samples}, at::TensorOptions(device).dtype(at::kLong))};
}

// Seconds of the metrics of one split; the thresholds come from another that stays in memory.
double measure_metrics(const Evaluator& evaluator, const SplitScores& scores, const std::optional<SplitScores>& val) {
  const auto start = Clock::now();
  evaluator.evaluate(scores, val ? &val->scores : nullptr);
  return seconds_since(start);
}

uint64_t checkpoint_bytes(const Experiment& run) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : state_dict(*run.model)) bytes += tensor.nbytes();
  if (run.train.ema_decay > 0) bytes *= 2;
  const auto copies = static_cast<uint64_t>(run.optimizer.state_size);
  for (const at::Tensor& parameter : run.model->parameters()) {
    if (parameter.requires_grad()) bytes += copies * parameter.nbytes();
  }
  for (const auto& [name, tensor] : run.loss->state()) bytes += tensor.nbytes();
  return bytes;
}

uint64_t free_bytes(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (error) throw read_error("read the free space of", folder, error.value());
  return space.available;
}

}  // namespace

DryRun dry_run(Experiment& run, ProgressBar& bar) {
  check_training_data(run);
  DryRun cost;
  cost.parameters = run.model->num_parameters();
  cost.trained_parameters = run.model->num_trained_parameters();

  const std::optional<FeaturePlan> features = feature_plan(run);
  if (features) {
    cost.feature_images = features->images;
    cost.feature_bytes = static_cast<uint64_t>(features->bytes());
    cost.features_s = measure_scoring(run, bar) * static_cast<double>(features->images);
    run.loader.features["train"] = zero_rows(run.dataset.train.size(), features->width);
  }
  std::optional<Throughput> throughput;  // its optimizer stays in memory, as in the run
  if (run.train.epochs > 0) {
    throughput.emplace(run);
    cost.steps = throughput->length().steps();
    cost.steps_per_epoch = throughput->length().steps_per_epoch;
    try {
      cost.step_s = measure_step(*throughput, bar);
      check_finite(*run.model, *run.loss, throughput->steps_taken());
    } catch (const NumericalError& error) {
      bar.hide();
      cost.divergence = error.what();
      cost.step_s = measure_step_of_diverged(run, throughput, bar);
    }
    cost.train_s = cost.step_s * static_cast<double>(cost.steps);
  }

  // The last evaluations are of checkpoints that are read from disk, so a copy of one lies in memory beside the rest.
  const at::Tensor checkpoint = at::ones({static_cast<int64_t>(checkpoint_bytes(run))}, at::kByte);
  const double score_s = measure_scoring(run, bar);
  std::optional<SplitScores> val;
  const auto scores_of = [&](const Split& split) {
    return random_scores(split.size(), run.dataset.num_classes(), run.device);
  };
  if (run.dataset.val.size() > 0) val = scores_of(run.dataset.val);
  const auto seconds_of = [&](const std::vector<std::string>& splits, double views) {
    int64_t images = samples_to_score(run.config, run.dataset, run.threshold_split, splits);
    if (features && views == 1) {
      // The body sees the plan's images once, and scores from their features cost next to nothing.
      for (const std::string& split : splits_to_score(run.config, splits, run.dataset.calibration.size() > 0)) {
        const bool is_cached = split != "train" && std::ranges::count(features->splits, split) > 0;
        if (is_cached) images -= split_named(run.dataset, split).size();
      }
    }
    double seconds = views * score_s * static_cast<double>(images);
    for (const std::string& split : splits)
      seconds += measure_metrics(*run.evaluator, scores_of(split_named(run.dataset, split)), val);
    return seconds;
  };
  const int64_t evaluations = (run.train.epochs + run.eval.every - 1) / run.eval.every;
  cost.eval_s = static_cast<double>(evaluations) * seconds_of(run.eval.during_training, 1);
  const config::Texts select = run.train.epochs > 0 ? run.general.select : config::Texts();
  const auto chosen = std::max<size_t>(1, select.size());
  const double crops = run.eval.view_use() == ViewUse::kTenCrops ? 10 : 1;
  cost.eval_s += static_cast<double>(chosen) * seconds_of(run.eval.splits, crops);

  // The last one, a best one for each metric, and the new one beside the old while it is written.
  cost.disk_bytes = (2 + Selection(select).best().size()) * checkpoint_bytes(run);
  cost.free_disk_bytes = free_bytes(run.config.get<std::string>("run.dir"));
  cost.memory = peak_memory();
  if (run.loader.resident) cost.image_bytes = run.loader.resident->bytes();
  return cost;
}

std::string format_dry_run(const Dataset& dataset, int64_t epochs, at::Device device, const DryRun& cost) {
  std::string text;
  const auto line = [&text](const char* what, const std::string& value) {
    text += fmt::format("{:<12} {}\n", what, value);
  };
  line("images", fmt::format("{} training, {} validation{}, {} test; {} classes", format_count(dataset.train.size()),
                             format_count(dataset.val.size()), calibration_images(dataset),
                             format_count(dataset.test.size()), format_count(dataset.num_classes())));
  line("parameters",
       format_count(cost.parameters) + (cost.trained_parameters < cost.parameters
                                            ? fmt::format(", {} trained", format_count(cost.trained_parameters))
                                            : ""));
  if (epochs > 0) {
    line("steps", fmt::format("{}: {} an epoch, {} epochs", format_count(cost.steps),
                              format_count(cost.steps_per_epoch), format_count(epochs)));
    line(
        "a step",
        fmt::format("{:.4g} s (median){}", cost.step_s,
                    cost.divergence.empty() ? "" : ", of steps at a learning rate of 0, since the loss is not finite"));
  } else {
    line("steps", "none: the first weights are evaluated as they are");
  }
  if (cost.feature_images > 0) {
    line("features", fmt::format("{} images once through the frozen body, {}, into {} of files (data.cache_features)",
                                 format_count(cost.feature_images), format_duration(cost.features_s),
                                 format_bytes(cost.feature_bytes)));
  }
  line("time", fmt::format("{} of training and {} of evaluation, on {}", format_duration(cost.train_s),
                           format_duration(cost.eval_s), device.str()));
  line("disk", fmt::format("{} of checkpoints; {} are free", format_bytes(cost.disk_bytes),
                           format_bytes(cost.free_disk_bytes)));
  std::string memory = format_memory(cost.memory);
  if (cost.image_bytes > 0)
    memory += fmt::format("; {} of it for images that stay on {}", format_bytes(cost.image_bytes), device.str());
  line("memory", memory);
  return text;
}

}  // namespace settrain
