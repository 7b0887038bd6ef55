// A report on runs: its data as JSON, and one HTML file that shows them and asks for nothing from elsewhere.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// An object that the page draws:
///  - "title", "settrain", "date" (UTC), "notes" (sentences), "runs" (run_json());
///  - "curves": of each "name", and "fraction": whether it is one in [0, 1];
///  - "comparison" of the runs that have results, null where there is none: "keys" ([path, values]) that differ, as
///    YAML or null; "metrics": for each "metric", "settings" and "differences" (from the first setting, by seed), with
///    texts as `settrain compare` prints them, and mean, low and high of the 95 % interval, null where undefined;
///  - "shown": a run's place in "runs", "why" it is shown, its "checkpoint", "split", "set_sizes", and "answers"
///    (answers_json()) or "missing", a sentence that says why they are not there. These need the scores of images, so
///    checkpoints are evaluated again, with `settings` over the runs' configs; without `with_answers` they are missing.
///
/// `folders` are runs' folders, finished or not. Those without a config.yaml, which never began, are left out with a
/// note; so are results and curves that cannot be read. Throws RunError where no run is left, ConfigError where a
/// config.yaml is no configuration of this program, and Interrupted after a signal.
nlohmann::ordered_json report_data(const Registries& registries, at::Device device,
                                   const std::vector<std::filesystem::path>& folders, bool with_answers,
                                   const std::vector<std::string>& settings, ProgressBar& bar);

/// The beginning of every report.
inline constexpr std::string_view kReportMarker = "<!doctype html>\n<!-- settrain report -->\n";

/// JSON that may stand in a <script> element: without "<", so that no text in it ends the element or begins a comment.
/// Bytes that are no UTF-8 become U+FFFD.
std::string script_json(const nlohmann::ordered_json& data);

/// The page: `data` as report_data() makes it, with the style and the scripts that draw it. `title` is plain text.
std::string report_page(std::string_view title, const nlohmann::ordered_json& data);

/// The files of this folder that make the page, and Chart.js, as text. The build writes their definitions.
namespace page_parts {
extern const std::string_view page_html, page_css, page_js, charts_js, answers_js, calibrations_js;
extern const std::string_view chart_js;  // with the notice of its licence, MIT
}  // namespace page_parts

}  // namespace settrain
