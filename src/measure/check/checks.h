// Checks of this build against recorded golden values: losses, metrics, models, files of weights.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "models/registry.h"

namespace settrain {

/// One comparison.
struct CheckRow {
  std::string name;  // what was checked: "noised_topk"
  std::string what;  // the case and the values compared: "ties: per sample, loss, gradient"
  double max_error = 0;
  double tolerance = 0;
  bool passed = false;
  std::string note;  // why it failed, or what was left out
};

/// The largest error so far, and where it was. An error that is not a number counts as infinite.
struct WorstError {
  double error = 0;
  std::string where;

  void add(double other, const std::string& at) {
    if (std::isnan(other)) other = std::numeric_limits<double>::infinity();
    if (other <= error) return;
    error = other;
    where = at;
  }
  CheckRow row(const std::string& name, const std::string& what, double tolerance) const {
    const bool passed = error <= tolerance;
    return {name, what, error, tolerance, passed, passed ? "" : where};
  }
};

/// Feeds every case of every file, with its recorded noise, to the loss it names, and makes two rows of it. In float64:
/// losses, mean and gradient of the mean against the file, within 1e-9 of max(1, |value|), or 1e-7 where scores exceed
/// 1000. Then the same in float32 against float64, both on the inputs rounded to float32, within the tolerance table,
/// relative to the size of the scores. A case without a gradient is compared without, and the note says so. A loss that
/// is not registered, or a case that the loss refuses, is a failed row. Where a case was recorded from code that
/// disagrees with the paper's formula ("agrees_with_formula": false), the formula's values are taken. Throws DataError
/// naming the file and the place in it where a file is missing or malformed.
std::vector<CheckRow> check_losses(const LossRegistry& registry, c10::Device device,
                                   const std::vector<std::filesystem::path>& files);

/// Computes every case of every file on `device`, the validation split setting the thresholds, and compares all that
/// the file expects: counts exactly, fractions within 1e-12, thresholds within 1e-15, which they are in float64. A row
/// a case and kind. Throws DataError naming the file and the place in it where a file is missing or malformed.
std::vector<CheckRow> check_metrics(c10::Device device, const std::vector<std::filesystem::path>& files,
                                    c10::ScalarType dtype = c10::kDouble);

/// For every NAME.json (made by scripts/record_model_golden.py): builds the model, fills it by the closed formula, and
/// compares the logits in evaluation and training mode in float64 and float32, every gradient and every buffer in
/// float64, and the gradients' norms in float32. Where NAME.params.txt and NAME.init.json lie beside it, also the
/// entries' names and shapes and the initial weights. A NAME.params.txt may also be given alone.
/// Forbids TF32. Throws DataError naming the file where it is missing or malformed.
std::vector<CheckRow> check_models(const ModelRegistry& registry, c10::Device device,
                                   const std::vector<std::filesystem::path>& files);

/// For every golden file: reads the files of weights that it lists, beside it, and compares each tensor's path, type,
/// shape, strides, offset and values, and all other values; what it lists as hostile must be refused. Where it has
/// logits of its model, these too: a convolution, batch normalisation, ReLU, the mean over the image, and a linear
/// layer. Throws DataError naming the golden file where it is missing or malformed.
std::vector<CheckRow> check_weights(const std::vector<std::filesystem::path>& files);

}  // namespace settrain
