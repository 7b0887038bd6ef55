// The size and the normalisation of the model's input, and what `auto` comes to for both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/registry.h"
#include "models/registry.h"
#include "src/config/config.h"
#include "src/core/progress_bar.h"
#include "src/formats/model_card.h"

namespace settrain {

/// The input that a run was trained with, as its checkpoints record it. Where all is empty, an early version of the
/// program made the run: `auto` was the data set's size, or 224, and its usual normalisation.
struct RecordedInput {
  int64_t height = 0, width = 0;
  Normalisation normalisation{};

  static RecordedInput of(const ModelCard& card);
};

struct ModelInput {
  int64_t size = 0;  // PipelineOptions::input_size; auto only where the data set gives the size of its images
  Normalisation normalisation{};
  std::vector<std::string> remarks{}, warnings{};  // for the log of a run that starts
};

/// What is known of the images that weights in a file were trained on.
struct WeightsInput {
  int64_t size = 0;  // their height and width; 0: unknown
  Normalisation normalisation{};
  std::string source{};  // what says so: "their card"

  bool is_known() const { return !normalisation.mean.empty(); }
};

/// The file's card where it has one; size and normalisation of `model`'s published weights where it has such and no run
/// of settrain wrote the file; else nothing is known. Throws KeyError where the file cannot be read.
WeightsInput input_of_weights(const DatasetRegistry& datasets, const ModelEntry& model, const std::string& file);

/// The input for a config and its data. `recorded` decides what auto comes to for a run that was trained before. For a
/// new one, without it, auto is as the keys' help says: for the size, headers of images are read until one decides.
/// Throws KeyError where the normalisation has other channels than the images, or the file of model.pretrained cannot
/// be read.
ModelInput choose_input(const DatasetRegistry& datasets, const ModelRegistry& models, const config::Config& config,
                        const Dataset& data, const RecordedInput* recorded,
                        ProgressOutput output = no_progress_output());

}  // namespace settrain
