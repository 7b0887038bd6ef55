// Metrics of the set rules of eval.rules.
#pragma once

#include <memory>
#include <vector>

#include "metrics/metric.h"
#include "metrics/sets/rules/set_rule.h"

namespace settrain {

/// The rules of eval.rules. Throws by config.fail() where one is none, or comes twice.
std::vector<SetRule> read_rules(const config::Config& config);

std::unique_ptr<Metric> make_rule_metrics(std::vector<SetRule> rules);

/// Adds every metric of this folder.
void register_set_metrics(MetricRegistry& registry);

}  // namespace settrain
