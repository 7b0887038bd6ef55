// Metrics of the set rules of eval.rules.
#pragma once

#include <string>
#include <vector>

#include "metrics/metric.h"
#include "metrics/sets/rules/set_rule.h"

namespace settrain {

struct RuleOptions {
  config::Texts rules;

  static config::Keys keys();
};

/// The rules of eval.rules. Throws by config.fail() where one is none, or comes twice.
std::vector<SetRule> read_rules(const config::Config& config);

/// For every rule R: "coverage@R", "size@R" (the sets' mean size), "macro_coverage@R"; "undercoverage_gap@R" where the
/// rule has an error; "below_half@R". set_quality.h says what they are. A rule is calibrated on
/// MetricContext::calibration and judged on all of the split; without that, on one half of the split, drawn by
/// MetricContext::seed, and judged on the other. The size histogram of "coverage@R" comes along.
class RuleMetrics : public Metric {
 public:
  explicit RuleMetrics(std::vector<SetRule> rules) : rules_(std::move(rules)) {}

  std::vector<std::string> names() const override;
  /// Throws what calibrate() throws, and ShapeError where a split that calibrates itself has fewer than two samples.
  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override;

 private:
  std::vector<SetRule> rules_;
};

/// Adds every metric of this folder.
void register_set_metrics(MetricRegistry& registry);

}  // namespace settrain
