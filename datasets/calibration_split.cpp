#include "datasets/calibration_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/text.h"

namespace settrain {
namespace {

// The rows of `samples` of a row-major table with `columns` columns.
std::vector<float> rows_of(const std::vector<float>& table, size_t columns, const std::vector<int64_t>& samples) {
  std::vector<float> rows;
  for (const int64_t sample : samples) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(sample) * columns);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(columns));
  }
  return rows;
}

}  // namespace

config::Keys CalibrationOptions::keys() {
  using config::key;
  using O = CalibrationOptions;
  return {key("calibration_share", &O::share, 0.0,
              "Share of the validation images that are kept for calibrating set rules, in a split `calibration` of "
              "their own: `select`, thresholds and metrics of `val` never see them, so that conformal sets keep their "
              "guarantee. 0 keeps none.")
              .at_least(0)
              .below(1),
          key("calibration_seed", &O::seed, int64_t{1234},
              "Seed that selects the images of data.calibration_share, and the half of a split that calibrates "
              "eval.rules; separate from the run's seed, so that runs with different seeds share it.")
              .at_least(0)};
}

void hold_out_calibration(const CalibrationOptions& options, Dataset& dataset) {
  if (options.share == 0) return;
  const int64_t images = dataset.val.size();
  const auto held_out = static_cast<int64_t>(std::llround(options.share * static_cast<double>(images)));
  if (held_out == 0 || held_out == images) {
    throw KeyError("data.calibration_share",
                   images == 0 ? "there are no validation images to take a share of"
                               : fmt::format("{} of the {} validation images leaves {}", options.share, images,
                                             held_out == 0 ? "none to calibrate on" : "none to validate on"));
  }
  std::vector<int64_t> order = permutation(images, static_cast<uint64_t>(options.seed), Stream::kCalibration);
  const auto middle = order.begin() + held_out;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  const std::vector<int64_t> calibration(order.begin(), middle), rest(middle, order.end());

  dataset.calibration = some_of(dataset.val, calibration);
  dataset.calibration.name = "calibration";
  dataset.val = some_of(dataset.val, rest);
  if (dataset.truth) {
    auto truth = std::make_shared<KnownTruth>(*dataset.truth);
    auto& [train, val, test, of_calibration] = truth->probabilities;
    const auto classes = static_cast<size_t>(dataset.num_classes());
    of_calibration = rows_of(val, classes, calibration);
    val = rows_of(val, classes, rest);
    dataset.truth = std::move(truth);
  }
  dataset.digest = sha256(fmt::format("{}\ncalibration {} {}\n", dataset.digest, options.share, options.seed));
}

std::string calibration_images(const Dataset& dataset) {
  const int64_t images = dataset.calibration.size();
  return images > 0 ? fmt::format(", {} calibration", format_count(images)) : "";
}

}  // namespace settrain
