// Everything that a config describes, built: data, model, loss, evaluator.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/label_noise.h"
#include "metrics/sets/rules/calibrated_rule.h"
#include "src/config/config.h"
#include "src/eval/evaluator.h"
#include "src/formats/model_card.h"
#include "src/loader/loader.h"
#include "src/parallel/process_group.h"
#include "src/train/compute_policy.h"
#include "src/train/experiment_schema.h"
#include "src/train/model_input.h"
#include "src/train/pretrained.h"
#include "src/train/run_options.h"

namespace settrain {

struct Experiment {
  config::Config config;
  at::Device device;
  std::shared_ptr<ProcessGroup> group{};  // of the processes that share the work; alone where there is one
  ComputePolicy policy{};
  GeneralOptions general{};
  TrainOptions train{};
  EvalOptions eval{};
  LoaderContext loader{};
  Dataset dataset{};                                           // training labels with their noise
  ModelContext input{};                                        // of the model
  std::vector<std::string> input_remarks{}, input_warnings{};  // for the log, see ModelInput
  LabelNoiseReport label_noise{};
  std::vector<int64_t> train_counts{};     // [classes], label noise included
  ClassFacts class_facts{};                // for set rules
  std::shared_ptr<Model> model{};          // on `device`, with its first weights
  bool takes_one_image = true;             // it can be trained on a batch of one, or no batch gets so small
  std::optional<Pretrained> pretrained{};  // the weights that it was loaded with
  std::string pretrained_digest{};         // of the file that the run began with, also where it goes on; empty for none
  std::vector<std::string> fitted{};       // fitted_keys() of the config that the run began with
  std::unique_ptr<Loss> loss{};
  OptimizerEntry optimizer{};  // makes the optimizer, of which only training has one
  std::string stall_advice{};  // what to try where the loss does not fall
  std::unique_ptr<Evaluator> evaluator{};
  std::optional<Split> threshold_split{};  // the unlabelled images of eval.threshold_from, where that is a folder
  // Splits that differ from a checkpoint's and were warned of. The value: whether the names of their files are the
  // same.
  std::map<std::string, bool> changed_splits{};
  bool has_told_classes = false;  // whether other names or superclasses than a checkpoint's were warned of
};

/// The first weights of a model: those of model.pretrained; or weights as drawn whatever it says, for callers that load
/// a checkpoint afterwards, or measure speed alone, and need no such file.
enum class FirstWeights { kPretrained, kDrawn };

/// Loads the data, adds the label noise, and builds model, loss and evaluator, all as functions of the config alone.
/// Defaults that ask for more classes than there are become smaller: K of the metrics are left out, and that of the
/// loss is lowered. Also sets up the process as prepare_process() does. Throws ConfigError or DataError; where data and
/// weights are both missing, one error that says both. `group`: null for a process alone. `recorded`: the
/// input of the run, where it was trained before.
Experiment make_experiment(const Registries& registries, config::Config config, at::Device device,
                           FirstWeights weights = FirstWeights::kDrawn, std::shared_ptr<ProcessGroup> group = nullptr,
                           const std::optional<RecordedInput>& recorded = std::nullopt);

/// Why a metric of `select` ("val/medium_top1") has no value on the data of `config`: there may be no medium-shot
/// class, or fewer than five classes for "val/top5". Empty where it has one, and for metrics of rules. Loads the data,
/// and builds no model. Throws ConfigError or DataError where the data cannot be loaded.
std::string why_no_value(const Registries& registries, const config::Config& config, const std::string& metric);

/// All images of a folder as a split without labels: these are 0, and must not be read. Throws what unlabelled_images()
/// throws.
Split unlabelled_split(const Dataset& dataset, const std::string& folder);

/// How the config's loaders make batches for networks that compute as `policy` says.
LoaderContext loader_context(const config::Config& config, const ComputePolicy& policy,
                             const Normalisation& normalisation);

/// A model, and the weights that it was loaded with, if any.
struct BuiltModel {
  std::shared_ptr<Model> model;
  std::optional<Pretrained> pretrained;
};

/// The config's model with its first weights, on the policy's device and in its layout. Weights are drawn from ATen's
/// generator.
BuiltModel build_model(const ModelRegistry& registry, const config::Config& config, const ModelContext& context,
                       const ComputePolicy& policy, FirstWeights weights = FirstWeights::kDrawn);

/// The config's loss for the training split of `data`, whose classes have `train_counts` images. Throws ConfigError
/// where the loss does not suit the data.
std::unique_ptr<Loss> build_loss(const LossRegistry& registry, const config::Config& config, const Dataset& data,
                                 const std::vector<int64_t>& train_counts);

/// The evaluator of every metric of the config. `facts`: of the classes of `data`. `score_scale`: Loss::score_scale().
std::unique_ptr<Evaluator> build_evaluator(const MetricRegistry& registry, const config::Config& config,
                                           const Dataset& data, const ClassFacts& facts, double score_scale);

/// The keys whose defaults make_experiment() has fitted to the data's number of classes.
std::vector<std::string> fitted_keys(const config::Config& config);

/// The description of the model that its checkpoints carry, for those who have no training data.
ModelCard card_of(const Experiment& run);

}  // namespace settrain
