#include "src/report/answers.h"

#include <algorithm>
#include <utility>

#include "src/inference/trained_run.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

std::string shown_split(const config::Texts& splits) {
  return std::find(splits.begin(), splits.end(), "test") == splits.end() ? splits.back() : "test";
}

}  // namespace

Answers evaluate_answers(const Registries& registries, at::Device device, const std::filesystem::path& run,
                         const std::string& checkpoint, ProgressBar& bar) {
  TrainedRun trained = open_trained_run(registries, run, {checkpoint}, device);
  Experiment& experiment = trained.experiment;
  load_weights(experiment, trained.checkpoints.front());
  const std::string split = shown_split(experiment.eval.splits);
  const JudgedScores judged = score_with_thresholds(experiment, split, bar);
  MetricContext context{experiment.train_counts, experiment.loss->score_scale(), nullptr};
  if (judged.thresholds) context.threshold_scores = &*judged.thresholds;
  const AnswerOptions rule{experiment.config.read<AverageKOptions>("eval"),
                           experiment.config.read<TopkAccuracyOptions>("eval"), trained.select};
  JudgedSets sets = judged_sets(rule, judged.split, context);
  return {checkpoint,     std::move(experiment.dataset), split, std::move(experiment.train_counts), judged.split,
          std::move(sets)};
}

}  // namespace settrain
