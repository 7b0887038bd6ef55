// A trained model without its training data: what `settrain predict` answers with.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/decode_image.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/eval/crop_average.h"
#include "src/formats/model_card.h"
#include "src/train/checkpoint.h"
#include "src/train/compute_policy.h"
#include "src/train/experiment.h"

namespace settrain {

struct TrainedModel {
  std::filesystem::path file;  // the checkpoint, or the exported model
  bool is_exported = false;
  config::Config config;
  ModelCard card{};
  std::optional<StoredRules> rules{};
  ComputePolicy policy{};
  LoaderContext loader{};
  ViewUse view_use = ViewUse::kEvaluation;
  CropAverage crop_average{};
  std::shared_ptr<Model> model{};  // with its weights, in evaluation mode
};

/// Opens a checkpoint in a run's folder, or a file that `settrain export` wrote. Nothing in the latter is trusted.
/// `settings` are key.path=value over its config, those that `settrain eval` takes; without
/// run.threads among them there are as many compute threads as on a machine that trains anew. Sets up the process as
/// make_experiment() does.
///
/// A checkpoint of an early version has no card: it is made from the run's data. Throws RunError that names the file
/// where something in it is damaged, missing or does not fit together, ConfigError for a setting, and where the data
/// are needed and missing DataError.
TrainedModel open_trained_model(const Registries& registries, const std::filesystem::path& file, at::Device device,
                                const std::vector<std::string>& settings = {});

/// The card that a run's checkpoint carries, or that of an early one, made from the run's data.
ModelCard card_of_checkpoint(const Registries& registries, const Checkpoint& checkpoint, at::Device device,
                             const std::vector<std::string>& settings = {});

/// The rules that were calibrated for a checkpoint that lies in a run's folder, if any, for that many classes. Says so
/// where they are damaged, or of other weights.
std::optional<StoredRules> rules_of_checkpoint(const Checkpoint& checkpoint, int64_t classes);

ClassFacts class_facts(const ModelCard& card);

/// How its images are decoded: turned as the run's data were (data.apply_orientation), or upright where these had no
/// such key; grey where the model is for grey ones.
DecodeOptions decode_options(const TrainedModel& model);

/// Its scores, [images, classes] on any device, as rules take them: on the CPU, times the loss' score scale and over
/// the temperature.
at::Tensor rule_scores(const TrainedModel& model, const at::Tensor& scores);

/// Logs whose probabilities make the sets where a reader may wonder: of sigmoids, or of the second of two heads.
void tell_probabilities(const char* who, ProbabilityKind probability, const std::string& head);

}  // namespace settrain
