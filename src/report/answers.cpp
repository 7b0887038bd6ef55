#include "src/report/answers.h"

#include <algorithm>
#include <utility>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/run_folder/run_folder.h"
#include "src/train/checkpoint.h"
#include "src/train/evaluation.h"
#include "src/train/experiment.h"
#include "src/train/resume.h"

namespace settrain {
namespace {

std::string shown_split(const config::Texts& splits) {
  return std::find(splits.begin(), splits.end(), "test") == splits.end() ? splits.back() : "test";
}

}  // namespace

Answers evaluate_answers(const Registries& registries, at::Device device, const ComparedRun& run,
                         const std::string& checkpoint, ProgressBar& bar) {
  const RunFolder folder = RunFolder::open_existing(run.folder);
  const Checkpoint weights = load_checkpoint(folder.checkpoint(checkpoint));
  // What the run selected on need not be measured again.
  Experiment experiment = make_experiment(registries, run.config.with("select", config::Texts{}), device);
  check_same_model(experiment, weights);
  check_same_data(experiment, weights);
  weights.copy_into(weights.weights_prefix(), state_dict(*experiment.model));

  const std::string split = shown_split(experiment.eval.splits);
  const JudgedScores judged = score_with_thresholds(experiment, split, bar);
  MetricContext context{experiment.train_counts, experiment.loss->score_scale(), nullptr};
  if (judged.thresholds) context.threshold_scores = &*judged.thresholds;
  const SetRule rule{run.config.read<AverageKOptions>("eval"), run.config.read<TopkAccuracyOptions>("eval"),
                     run.config.get<config::Texts>("select")};
  JudgedSets sets = judged_sets(rule, judged.split, context);
  return {checkpoint,     std::move(experiment.dataset), split, std::move(experiment.train_counts), judged.split,
          std::move(sets)};
}

}  // namespace settrain
