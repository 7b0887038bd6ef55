// The time, disk and memory that a run will take, measured on a few of its steps.
#pragma once

#include <cstdint>
#include <string>

#include "src/core/progress_bar.h"
#include "src/train/experiment.h"
#include "src/train/peak_memory.h"

namespace settrain {

struct DryRun {
  int64_t parameters = 0, trained_parameters = 0;
  int64_t steps = 0, steps_per_epoch = 0;  // both 0 where nothing is trained
  double step_s = 0;                       // median seconds of an optimizer step
  std::string divergence;                  // which step's loss is not finite, as a message; empty where all are
  double train_s = 0;                      // of all steps
  int64_t feature_images = 0;              // that the frozen body sees once, before the first step; see FeaturePlan
  double features_s = 0;                   // for these
  uint64_t feature_bytes = 0;              // of the files with their features
  double eval_s = 0;                       // of all evaluations, those at the end included
  uint64_t disk_bytes = 0;                 // of all checkpoints, one of them twice while it is written
  uint64_t free_disk_bytes = 0;            // where run.dir is, or would be
  PeakMemory memory;
  uint64_t image_bytes = 0;  // the part of the memory on the model's device that holds images which stay there
};

/// Takes some steps and evaluates some batches, for a few seconds, and computes every metric on scores of the splits'
/// sizes, so that what is measured now is what the run will need. Where the loss of a step is not finite, other steps
/// are measured, which change no weight. Writes nothing; leaves a trained-on model behind.
DryRun dry_run(Experiment& run, ProgressBar& bar);

/// A table for people, of a run of so many epochs on that device; every line ends in a newline.
std::string format_dry_run(const Dataset& dataset, int64_t epochs, at::Device device, const DryRun& cost);

}  // namespace settrain
