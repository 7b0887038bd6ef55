#include <fmt/format.h>

#include "src/inference/calibration.h"

namespace settrain {
namespace {

ChartSeries class_series(const JudgedRule& judged, const std::vector<int64_t>& train_counts) {
  ChartSeries series{.name = judged.rule.rule.name()};
  for (size_t c = 0; c < train_counts.size(); ++c) {
    series.points.push_back({.x = static_cast<double>(train_counts[c]), .y = judged.quality.class_coverage[c]});
  }
  return series;
}

ChartSeries alpha_series(const JudgedRule& judged) {
  ChartSeries series{.name = judged.rule.rule.name()};
  for (const AlphaPoint& point : judged.by_alpha) series.points.push_back({.x = point.mean_size, .y = point.coverage});
  return series;
}

}  // namespace

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
    classes.series.push_back(class_series(judged, calibration.facts.train_counts));
    alphas.series.push_back(alpha_series(judged));
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
