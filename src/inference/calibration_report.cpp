#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/inference/calibration.h"

namespace settrain {
namespace {

constexpr size_t kColumns = 120;

using Row = std::vector<std::string>;
using nlohmann::ordered_json;

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

ordered_json defined(double value) {
  return std::isfinite(value) ? ordered_json(value) : nullptr;
}

ordered_json to_json(const SetQuality& quality, const std::vector<std::string>& ranks) {
  ordered_json by_class = ordered_json::array();
  for (const double coverage : quality.class_coverage) by_class.push_back(defined(coverage));
  ordered_json json{{"images", quality.images},
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
  if (!quality.rank_coverage.empty()) {
    json["mean_nodes"] = defined(quality.mean_nodes);
    json["mean_depth"] = defined(quality.mean_depth);
    for (size_t r = 0; r < quality.rank_coverage.size(); ++r)
      json["rank_coverage"][ranks[r + 1]] = quality.rank_coverage[r];
  }
  return json;
}

}  // namespace

std::string format_calibration(const Calibration& calibration) {
  std::vector<Row> sets, classes, nodes;
  std::map<std::string, std::vector<std::string>> promises;  // names of rules, by their guarantee
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
    if (!quality.rank_coverage.empty()) {
      nodes.push_back({name, number(quality.mean_nodes), number(quality.mean_depth)});
      for (const double coverage : quality.rank_coverage) nodes.back().push_back(percent(coverage));
    }
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
  if (!nodes.empty()) {
    Row head{"rule", "nodes", "depth"};
    const std::vector<std::string>& ranks = calibration.facts.taxonomy.ranks;
    for (size_t r = 1; r < ranks.size(); ++r) head.push_back("same " + ranks[r] + ", %");
    text +=
        "\nSets as nodes of the taxonomy: the fewest that make the set, their mean depth, and the images for which a "
        "class of the set agrees with the label in a rank\n\n" +
        markdown_table(head, nodes);
  }
  const int64_t without = calibration.rules.empty() ? 0 : calibration.rules.front().quality.classes_without_images;
  if (without > 0)
    text += fmt::format("\n{} classes have no image that judges, and are left out.\n", format_count(without));
  std::vector<std::string> guarantees;
  for (const auto& [promise, rules] : promises)
    guarantees.push_back(fmt::format("{}: {}", fmt::join(rules, ", "), promise));
  return text + format_places(calibration) + bullets("What is promised:", guarantees) + bullets("Notes:", notes);
}

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
                     {"quality", to_json(quality, calibration.facts.taxonomy.ranks)},
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
          {"places", places_json(calibration)},
          {"rules", std::move(rules)}};
}

Chart calibration_chart(const Calibration& calibration) {
  ChartPanel classes{.title = "Coverage of each class",
                     .kind = ChartKind::kPoints,
                     .x = {.label = "training images of the class", .is_log = true},
                     .y = {.label = "coverage", .least = 0, .most = 1}};
  ChartPanel alphas{.title = "Coverage and size, alpha from 0.4 to 0.01",
                    .x = {.label = "mean size of the sets", .is_log = true},
                    .y = {.label = "coverage", .most = 1}};
  for (const JudgedRule& judged : calibration.rules) {
    if (judged.rule.rule.kind != SetRule::Kind::kConformal) continue;
    ChartSeries by_class{.name = judged.rule.rule.name()}, by_alpha{.name = judged.rule.rule.name()};
    for (size_t c = 0; c < calibration.facts.train_counts.size(); ++c) {
      const auto images = static_cast<double>(calibration.facts.train_counts[c]);
      by_class.points.push_back({.x = images, .y = judged.quality.class_coverage[c]});
    }
    for (const auto& point : judged.by_alpha) by_alpha.points.push_back({.x = point.mean_size, .y = point.coverage});
    classes.series.push_back(std::move(by_class));
    alphas.series.push_back(std::move(by_alpha));
  }
  Chart chart{
      .name = "calibration",
      .title = "Sets of classes",
      .subtitle = fmt::format("Calibrated on {}, judged on {}.", calibration.calibrated_on, calibration.judged_on)};
  if (!calibration.facts.train_counts.empty()) chart.panels.push_back(std::move(classes));
  chart.panels.push_back(std::move(alphas));
  return chart;
}

}  // namespace settrain
