// A config made real: the objects of a run, wired together.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/label_noise.h"
#include "metrics/sets/rules/calibrated_rule.h"
#include "src/config/config.h"
#include "src/eval/evaluator.h"
#include "src/loader/loader.h"
#include "src/parallel/process_group.h"
#include "src/train/computation.h"
#include "src/train/pretrained.h"
#include "src/train/registries.h"
#include "src/train/run_options.h"

namespace settrain {

struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;
};

struct Experiment {
  config::Config config;
  at::Device device;
  std::shared_ptr<ProcessGroup> group{};  // of the processes that share the work; alone where there is one
  Computation computation{};
  GeneralOptions general{};
  TrainOptions train{};
  EvalOptions eval{};
  LoaderContext loader{};
  Dataset dataset{};   // training labels with their noise
  ImageShape input{};  // of the model
  LabelNoiseReport label_noise{};
  std::vector<int64_t> train_counts{};     // [classes], label noise included
  ClassFacts class_facts{};                // for set rules
  std::shared_ptr<Model> model{};          // on `device`, with its first weights
  std::optional<Pretrained> pretrained{};  // what they were loaded from
  std::string pretrained_digest{};         // of the file that the run began with, also where it goes on; empty for none
  std::unique_ptr<Loss> loss{};
  OptimizerEntry optimizer{};  // what makes the optimizer, of which only training has one
  std::string stall_advice{};  // what to try where the loss does not fall
  std::unique_ptr<Evaluator> evaluator{};
  std::optional<Split> threshold_split{};  // the unlabelled images of eval.threshold_from, where that is a folder
  std::string threshold_digest{};          // of that folder's files
};

/// What a model begins with: what model.pretrained says; or weights as drawn whatever it says, for who puts a
/// checkpoint's in their place, or measures speed alone, and needs no such file.
enum class FirstWeights { kPretrained, kDrawn };

/// Loads the data, adds the label noise, and builds model, loss and evaluator, all as functions of the config alone.
/// Also sets the process' compute threads, whether ATen keeps to deterministic algorithms, and how its heap is kept.
/// Throws ConfigError or DataError; where data and weights are both missing, one error that says both. `group`: null
/// for a process alone.
Experiment make_experiment(const Registries& registries, config::Config config, at::Device device,
                           FirstWeights weights = FirstWeights::kDrawn, std::shared_ptr<ProcessGroup> group = nullptr);

/// Sets the process' compute threads, whether ATen keeps to deterministic algorithms, and how its heap is kept, as the
/// config says; its run.threads is resolved.
void prepare_process(const config::Config& config, at::Device device);

/// How the config's loaders make batches on that device, but for normalisation and format of the pixels.
LoaderContext loader_context(const config::Config& config, at::Device device);

/// The config's model with weights as drawn, on the device and laid out as `computation` says.
std::shared_ptr<Model> make_model(const Registries& registries, const config::Config& config,
                                  const ModelContext& context, const Computation& computation);

/// "auto" (a GPU where there is one), "cpu", "cuda" or "cuda:N". Throws ConfigError for another name or a device that
/// is not there.
at::Device find_device(const std::string& name);

}  // namespace settrain
