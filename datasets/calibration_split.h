// A calibration split, taken from the validation images: keys of the section `data` that every data set has.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "src/config/key.h"

namespace settrain {

struct CalibrationOptions {
  double share = 0;  // of the validation images; 0: none
  int64_t seed = 1234;

  static config::Keys keys();
};

/// Moves that share of the validation images, rounded to whole images, from `val` to `calibration`. They are drawn
/// uniformly and not by class: so calibration and test images are exchangeable where validation and test images are. A
/// share of 0 changes nothing. Throws KeyError where either part would be empty, or data.calibration lists images.
void hold_out_calibration(const CalibrationOptions& options, Dataset& dataset);

/// A part of a sentence that counts images: ", 1,500 calibration"; empty where there are none.
std::string calibration_images(const Dataset& dataset);

}  // namespace settrain
