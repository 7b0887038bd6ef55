// What a sweep came to, as tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/studies/sweep/grid.h"
#include "src/studies/sweep/points.h"
#include "src/studies/sweep/sweep_folder.h"

namespace settrain {

/// One run of the sweep as it stands. Nothing in it depends on the clock, so that a sweep that was stopped and started
/// again gives the tables of one that was not.
struct SweepRow {
  const SweepPoint* point = nullptr;
  PointStatus status = PointStatus::kPending;
  std::optional<PointResult> result{};  // of a finished one
  std::string failure{};                // of a failed one, the first line of its error
};

/// Every run with its settings, status, chosen checkpoint and all of its metrics, by the names that they have in the
/// run's own files; fractions as they are, empty cells for what is not there.
std::string sweep_csv(const std::vector<SweepRow>& rows);

/// For people, in Markdown: every setting with the mean over its seeds of the metric that the sweep selects by, and 95
/// % intervals; then, for each value of `per`, the setting whose mean is best, with the metrics to be reported, of that
/// setting alone; then what failed, and what is still to come. Average-K comes with the sizes of its sets.
std::string sweep_markdown(const Grid& grid, const std::string& title, const std::vector<SweepRow>& rows);

}  // namespace settrain
