// What a figure shows of one run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/schema.h"
#include "src/papers/figure/paper_figure.h"
#include "src/run_folder/metrics_log.h"
#include "src/studies/sweep/sweep_folder.h"

namespace settrain {

/// Reads the files of finished runs once, whatever is asked for. All throw RunError where a file cannot be read, or has
/// lost rows.
class RunNumbers {
 public:
  explicit RunNumbers(const config::Schema& schema) : schema_(schema) {}

  /// A metric of the results, of the checkpoint that is best by `select`, or of an epoch. In percent where it is a
  /// fraction; nothing where the run has none.
  std::optional<double> value(const std::filesystem::path& run, const FigureAxis& axis, const std::string& metric,
                              const std::string& select);

  /// A metric of every epoch that has it: (epoch, value).
  std::vector<std::pair<double, double>> by_epoch(const std::filesystem::path& run, const FigureAxis& axis,
                                                  const std::string& metric);

  /// How many images got sets of 0, 1, ... classes; empty where the results have none of that metric ("test/avg5").
  std::vector<int64_t> set_sizes(const std::filesystem::path& run, const std::string& metric,
                                 const std::string& select);

 private:
  const PointResult& result(const std::filesystem::path& run, const std::string& select);
  const std::vector<MetricsRow>& epochs(const std::filesystem::path& run);

  const config::Schema& schema_;
  std::map<std::pair<std::filesystem::path, std::string>, PointResult> results_;
  std::map<std::filesystem::path, std::vector<MetricsRow>> epochs_;
};

}  // namespace settrain
