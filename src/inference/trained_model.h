// A trained model without its training data: opened from a checkpoint or an exported file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/decoding/decode_image.h"
#include "datasets/file_table.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/checkpoint/checkpoint.h"
#include "src/eval/crop_average.h"
#include "src/formats/model_card.h"
#include "src/train/compute_policy.h"
#include "src/train/experiment.h"

namespace settrain {

struct TrainedModel {
  std::filesystem::path file;  // the checkpoint, or the exported model
  std::string sha256{};        // of its weights: that in the checkpoint, or of the whole file where it is weights alone
  bool is_exported = false;
  config::Config config;
  ModelCard card{};
  std::optional<StoredRules> rules{};
  std::string rules_problem{};  // why the run's rules cannot be taken; empty where they can, or where there are none
  ComputePolicy policy{};
  LoaderContext loader{};
  ViewUse view_use = ViewUse::kEvaluation;
  CropAverage crop_average{};
  std::shared_ptr<Model> model{};     // with its weights, in evaluation mode
  bool answers_as_calibrated = true;  // false: its rules were calibrated with another run.inference
};

/// Facts about a model that a file of weights alone lacks.
struct WeightsAlone {
  std::string model;                    // model.name
  std::filesystem::path classes;        // a text file with the name of a class on each line, in the order of the scores
  std::string normalisation;            // data.normalisation; empty: auto
  std::optional<int64_t> input_size{};  // pixels; none: that of the published weights, or what the model was made for
  bool needs_head = true;               // false: the head's scores are of no use, and `classes` may be empty

  bool is_given() const { return !model.empty() || !classes.empty() || !normalisation.empty() || input_size; }
};

/// Opens a checkpoint in a run's folder, or a file that `settrain export` wrote; or, with `alone`, weights of others in
/// a file that model.pretrained takes. Nothing in files is trusted but checkpoints. `settings` are key.path=value over
/// its config: those that `settrain eval` takes, or for weights alone any. Without run.threads among them, the number
/// of compute threads is that of a new run on this machine. Sets up the process as make_experiment() does.
///
/// A checkpoint of an early version has no card, so the run's data are loaded to make it. Throws RunError that names
/// the file where a part of it is damaged, missing, or does not fit the others; ConfigError for a setting, and where
/// `alone` lacks what the file needs, or is given for a file that says it itself; DataError where the data, or the
/// classes' names, are needed and missing.
TrainedModel open_trained_model(const Registries& registries, const std::filesystem::path& file, at::Device device,
                                const std::vector<std::string>& settings = {}, const WeightsAlone& alone = {});

/// The model card in a run's checkpoint. For a checkpoint of an early version, which has none, it is made from the
/// run's data.
ModelCard card_of_checkpoint(const Registries& registries, const Checkpoint& checkpoint, at::Device device,
                             const std::vector<std::string>& settings = {});

/// The rules that were calibrated for a checkpoint in a run's folder, if any, for that many classes. Throws RunError
/// where they are damaged, or were calibrated for other weights.
std::optional<StoredRules> rules_of_checkpoint(const Checkpoint& checkpoint, int64_t classes);

ClassFacts class_facts(const ModelCard& card);

/// Throws ConfigError for a head without a body, which takes features in place of images.
void check_takes_images(const TrainedModel& model);

/// How the model's images are decoded: rotated by EXIF as the run's data were (data.apply_orientation), and where these
/// had no such key, always; grey where the model takes one channel. Throws as check_takes_images(). Weights alone have
/// the key's default or `settings`.
DecodeOptions decode_options(const TrainedModel& model);

/// A data set whose test split has these files as images, without labels.
Dataset images_of_files(const TrainedModel& model, const FileTable& files);

/// The model's scores, [images, classes] on any device, as rules take them: on the CPU, times the loss' score scale,
/// divided by the temperature.
at::Tensor rule_scores(const TrainedModel& model, const at::Tensor& scores);

/// Logs how probabilities are computed where it is not the softmax of the only head: by sigmoids, or from the second
/// head.
void tell_probabilities(const char* who, ProbabilityKind probability, const std::string& head);

}  // namespace settrain
