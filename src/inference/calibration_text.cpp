#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/inference/calibration.h"

namespace settrain {
namespace {

constexpr size_t kColumns = 120;

using Row = std::vector<std::string>;

std::string percent(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f}", 100 * share);
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value < 100 ? 2 : 0);
}

std::string bullets(const std::string& title, const std::vector<std::string>& lines) {
  std::string text = lines.empty() ? "" : "\n" + title + "\n";
  for (const std::string& line : lines) text += wrap_words("- " + line, kColumns, 2);
  return text;
}

}  // namespace

std::string format_calibration(const Calibration& calibration) {
  std::vector<Row> sets, classes;
  std::map<std::string, std::vector<std::string>> promises;  // the rules of each
  std::vector<std::string> notes;
  for (const auto& [rule, quality, by_alpha] : calibration.rules) {
    const std::string name = rule.rule.name();
    sets.push_back({name, percent(quality.coverage),
                    percent(quality.interval[0]) + " to " + percent(quality.interval[1]), number(quality.mean_size),
                    number(quality.median_size), percent(quality.empty), percent(quality.full)});
    classes.push_back({name, percent(quality.macro_coverage), percent(quality.shot_coverage[0]),
                       percent(quality.shot_coverage[1]), percent(quality.shot_coverage[2]),
                       percent(quality.below_half), percent(quality.undercoverage_gap), percent(quality.coverage_gap),
                       percent(quality.size_stratified_violation)});
    promises[rule.guarantee].push_back(name);
    for (const std::string& note : rule.notes) notes.push_back(name + ": " + note);
  }
  std::string text = fmt::format("Calibrated on {}, judged on {}.\n", calibration.calibrated_on, calibration.judged_on);
  text += fmt::format("Top-1 accuracy: {} % of the images that calibrate, {} % of those that judge.\n",
                      percent(calibration.calibration_top1), percent(calibration.judged_top1));
  const std::string fitting = fmt::format("{} other image{}", format_count(calibration.temperature_images),
                                          calibration.temperature_images == 1 ? "" : "s");
  const bool is_refused = !calibration.temperature_refused.empty();
  if (is_refused) text += fmt::format("Temperature 1: the fit to {} is refused.\n", fitting);
  if (!is_refused && (calibration.temperature_images > 0 || calibration.temperature != 1)) {
    text += fmt::format("Temperature {:.4g}", calibration.temperature);
    if (calibration.temperature_images > 0) text += ", fitted to " + fitting;
    text += fmt::format("; expected calibration error (15 bins) {} % before, {} % after.\n",
                        percent(calibration.error_before), percent(calibration.error_after));
  } else if (!std::isnan(calibration.error_before)) {
    text += fmt::format("Expected calibration error (15 bins): {} %.\n", percent(calibration.error_before));
  }
  text += bullets("Warnings:", calibration.warnings) + "\n" +
          markdown_table({"rule", "coverage, %", "95 % interval", "mean size", "median", "empty, %", "full, %"}, sets);
  text +=
      "\nCoverage by class, %\n\n" + markdown_table({"rule", "macro", "few", "medium", "many", "classes under 50",
                                                     "under-coverage gap", "coverage gap", "size-stratified violation"},
                                                    classes);
  const int64_t without = calibration.rules.empty() ? 0 : calibration.rules.front().quality.classes_without_images;
  if (without > 0)
    text += fmt::format("\n{} classes have no image that judges, and are left out.\n", format_count(without));
  std::vector<std::string> guarantees;
  for (const auto& [promise, rules] : promises)
    guarantees.push_back(fmt::format("{}: {}", fmt::join(rules, ", "), promise));
  return text + bullets("What is promised:", guarantees) + bullets("Notes:", notes);
}

}  // namespace settrain
