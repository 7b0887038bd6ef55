// Everything that a report shows.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// The most runs whose answers a report shows: the best of each of the first settings.
inline constexpr size_t kShownRuns = 4;

struct ReportOptions {
  bool answers = true;  // whether to evaluate checkpoints again, for what needs the scores of images
};

/// An object that the page draws: "title", "settrain", "date" (UTC), "notes" (sentences), "runs" (run_json()),
/// "curves" (of each "name", and "fraction": whether it is one in [0, 1]), "comparison" (comparison_page_json(), of the
/// runs that have results; null where there is none), "shown": a run's place in "runs", "why" it is shown, its
/// "checkpoint", "split", "set_sizes", and "answers" (answers_json()) or "missing", a sentence that says why they are
/// not there.
///
/// `folders` are runs' folders, finished or not. Those without a config.yaml, which never began, are left out with a
/// note; so are results and curves that cannot be read. Throws RunError where no run is left, ConfigError where a
/// config.yaml is no configuration of this program, and Interrupted after a signal.
nlohmann::ordered_json report_data(const Registries& registries, at::Device device,
                                   const std::vector<std::filesystem::path>& folders, const ReportOptions& options,
                                   ProgressBar& bar);

}  // namespace settrain
