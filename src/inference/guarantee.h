// Why calibrated set rules have no guarantee: their images trained the model, or chose its epoch. Rules that never have
// one: metrics/sets/rules/rule_terms.
#pragma once

#include <string>

#include "src/checkpoint/checkpoint.h"
#include "src/train/experiment.h"

namespace settrain {

/// The split that calibrates rules: "calibration" where data.calibration_share sets images apart, else "val". Throws
/// ConfigError where neither has images.
std::string calibration_split(const Dataset& dataset);

/// Why rules that a split's images calibrate have no guarantee; an empty text where they have one. Reasons:
/// - The model was trained on these images, or they selected it (`weights`, the checkpoint, has their metrics).
/// - It may have been, because load_weights() found other images than the run's.
/// - They share images (Dataset::shared_images) with the training split, with one that selected the model or, where
///   `with_test`, with the one that judges the rules.
std::string why_no_guarantee(const Experiment& run, const Checkpoint& weights, const std::string& split,
                             bool with_test = true);

}  // namespace settrain
