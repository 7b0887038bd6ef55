#include "src/papers/figure/run_numbers.h"

#include <algorithm>
#include <cmath>

#include "src/config/load.h"
#include "src/core/mean_interval.h"
#include "src/run_folder/run_folder.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The unit of the figure's axes.
double shown(double value, const FigureAxis& axis, const std::string& metric) {
  const double right = axis.is_error ? 1 - value : value;
  return unit_of(metric) == Unit::kFraction ? 100 * right : right;
}

const double* find_value(const std::vector<std::pair<std::string, double>>& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace

std::optional<double> RunNumbers::value(const fs::path& run, const FigureAxis& axis, const std::string& metric,
                                        const std::string& select) {
  const double* found = nullptr;
  if (axis.source == FigureSource::kResults) {
    found = find_value(result(run, select).metrics, metric);
  } else if (const std::vector<MetricsRow>& all = epochs(run); !all.empty()) {
    found = find_value((axis.source == FigureSource::kFirstEpoch ? all.front() : all.back()).values, metric);
  }
  return found && !std::isnan(*found) ? std::optional(shown(*found, axis, metric)) : std::nullopt;
}

std::vector<std::pair<double, double>> RunNumbers::by_epoch(const fs::path& run, const FigureAxis& axis,
                                                            const std::string& metric) {
  std::vector<std::pair<double, double>> all;
  for (const MetricsRow& row : epochs(run)) {
    const double* found = find_value(row.values, metric);
    if (found && !std::isnan(*found)) all.emplace_back(static_cast<double>(row.epoch), shown(*found, axis, metric));
  }
  return all;
}

std::vector<int64_t> RunNumbers::set_sizes(const fs::path& run, const std::string& metric, const std::string& select) {
  for (const auto& [name, counts] : result(run, select).set_sizes) {
    if (name == metric) return counts;
  }
  return {};
}

const PointResult& RunNumbers::result(const fs::path& run, const std::string& select) {
  const auto known = results_.find({run, select});
  if (known != results_.end()) return known->second;
  return results_.emplace(std::pair(run, select), read_result(run, select)).first->second;
}

const std::vector<MetricsRow>& RunNumbers::epochs(const fs::path& run) {
  const auto known = epochs_.find(run);
  if (known != epochs_.end()) return known->second;
  const RunFolder folder = RunFolder::open_existing(run);
  const auto finished = config::load_recorded(schema_, folder.config()).get<int64_t>("train.epochs");
  return epochs_.emplace(run, read_metrics(folder.metrics_jsonl(), finished)).first->second;
}

}  // namespace settrain
