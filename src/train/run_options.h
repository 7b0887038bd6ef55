// Keys of a run that belong to no data set, model or loss.
#pragma once

#include <string>

#include "models/inference_form.h"
#include "src/config/config.h"
#include "src/config/key.h"
#include "src/eval/crop_average.h"
#include "src/loader/pipeline.h"

namespace settrain {

/// The top level.
struct GeneralOptions {
  std::string name;
  int64_t seed = 0;
  config::Texts select;

  static config::Keys keys();
};

/// The texts of run.inference.
const config::Named<InferenceForm>& inference_forms();

/// The section `run`.
struct RunOptions {
  std::string dir;
  int64_t threads = 0;
  InferenceForm inference = InferenceForm::kFast;

  static constexpr int64_t kAuto = 0;  // what the word auto stands for in threads

  /// Compute threads: where `auto`, OMP_NUM_THREADS (a list's first), else one a core.
  int64_t resolved_threads() const;

  static config::Keys keys();
};

/// The section `train`.
struct TrainOptions {
  int64_t epochs = 0;
  int64_t accumulate = 0;
  double clip_norm = 0;  // 0: off
  config::Switch deterministic = config::Switch::kAuto, channels_last = config::Switch::kAuto;
  std::string precision;
  bool gradient_checkpointing = false;
  config::Switch graph = config::Switch::kAuto;
  double ema_decay = 0;  // 0: off
  bool ema_warmup = true;
  int64_t checkpoint_steps = 0;   // 0: off
  double checkpoint_minutes = 0;  // 0: off
  config::Integers top_k;         // every K >= 1, each once
  bool gradient_nonzeros = false;

  static config::Keys keys();
};

/// Keys of the section `eval` that belong to no metric.
struct EvalOptions {
  enum class Crops { kCenter, kTen };
  using enum Crops;

  config::Texts splits, during_training;
  int64_t every = 0;
  Crops crops = kCenter;
  CropAverage::Kind crop_average = CropAverage::kSoftmax;
  int64_t crop_average_k = 0;

  static constexpr int64_t kAuto = 0;  // what the word auto stands for in crop_average_k

  /// The K of the top-K probabilities: where `auto`, the loss's, rounded, or 1.
  int64_t resolved_crop_average_k(const config::Config& config) const;
  ViewUse view_use() const { return crops == kTen ? ViewUse::kTenCrops : ViewUse::kEvaluation; }

  static config::Keys keys();
};

}  // namespace settrain
