#include <cmath>
#include <nlohmann/json.hpp>

#include "src/inference/calibration.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

ordered_json defined(double value) {
  return std::isfinite(value) ? ordered_json(value) : nullptr;
}

ordered_json to_json(const SetQuality& quality) {
  ordered_json by_class = ordered_json::array();
  for (const double coverage : quality.class_coverage) by_class.push_back(defined(coverage));
  return {{"images", quality.images},
          {"coverage", defined(quality.coverage)},
          {"interval", quality.interval},
          {"mean_size", quality.mean_size},
          {"median_size", quality.median_size},
          {"macro_coverage", defined(quality.macro_coverage)},
          {"few_coverage", defined(quality.shot_coverage[0])},
          {"medium_coverage", defined(quality.shot_coverage[1])},
          {"many_coverage", defined(quality.shot_coverage[2])},
          {"below_half", defined(quality.below_half)},
          {"undercoverage_gap", defined(quality.undercoverage_gap)},
          {"coverage_gap", defined(quality.coverage_gap)},
          {"size_stratified_violation", defined(quality.size_stratified_violation)},
          {"empty", quality.empty},
          {"full", quality.full},
          {"classes_without_images", quality.classes_without_images},
          {"class_coverage", std::move(by_class)}};
}

}  // namespace

ordered_json calibration_json(const Calibration& calibration) {
  ordered_json rules = ordered_json::array();
  for (const auto& [rule, quality, by_alpha] : calibration.rules) {
    ordered_json alphas = ordered_json::array();
    for (const auto& [alpha, coverage, mean_size] : by_alpha) {
      alphas.push_back({{"alpha", alpha}, {"coverage", coverage}, {"mean_size", mean_size}});
    }
    rules.push_back({{"rule", rule.rule.name()},
                     {"wanted_coverage", defined(rule.rule.wanted_coverage())},
                     {"calibration_images", rule.images},
                     {"guarantee", rule.guarantee},
                     {"notes", rule.notes},
                     {"quality", to_json(quality)},
                     {"by_alpha", std::move(alphas)}});
  }
  return {{"calibrated_on", calibration.calibrated_on},
          {"judged_on", calibration.judged_on},
          {"temperature", calibration.temperature},
          {"temperature_images", calibration.temperature_images},
          {"temperature_refused",
           calibration.temperature_refused.empty() ? ordered_json() : ordered_json(calibration.temperature_refused)},
          {"top1", {{"calibration", calibration.calibration_top1}, {"judged", calibration.judged_top1}}},
          {"calibration_error",
           {{"before", defined(calibration.error_before)}, {"after", defined(calibration.error_after)}}},
          {"warnings", calibration.warnings},
          {"train_counts", calibration.facts.train_counts},
          {"rules", std::move(rules)}};
}

}  // namespace settrain
