#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/metric_name.h"
#include "src/report/report.h"
#include "src/report/report_parts.h"
#include "src/run_folder/run_folder.h"
#include "src/studies/compare/comparison.h"
#include "src/train/experiment_schema.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The most runs whose answers a report shows: the best of each of the first settings.
constexpr size_t kShownRuns = 4;

// Reads a run; without checkpoints where it has no results, or none that can be read.
ComparedRun read_run(const config::Schema& schema, const fs::path& folder, ordered_json& notes) {
  const RunFolder run = RunFolder::open_existing(folder);
  if (fs::exists(run.results_json())) {
    try {
      return read_runs(schema, {folder}).front();
    } catch (const RunError& problem) {
      notes.push_back(fmt::format("{}. The run's curves and configuration are shown.", problem.what()));
    }
  } else {
    notes.push_back(fmt::format(
        "'{}' has no results yet (no results.json): it is being trained, or was stopped; settrain --resume goes on "
        "with it. Its curves and configuration are shown.",
        folder.string()));
  }
  config::Config config = config::load_recorded(schema, run.config());
  const auto seed = config.get<int64_t>("seed");
  return {folder, std::move(config), seed, {}};
}

std::vector<ComparedRun> read_all(const config::Schema& schema, const std::vector<fs::path>& folders,
                                  ordered_json& notes) {
  std::vector<ComparedRun> runs;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / "config.yaml")) {
      runs.push_back(read_run(schema, folder, notes));
    } else {
      notes.push_back(
          fmt::format("'{}' is left out: the run ended before it began (no config.yaml).", folder.string()));
    }
  }
  if (runs.empty()) throw RunError(fmt::format("no run to report: '{}' never began", folders.front().string()));
  return runs;
}

// The settings with those of their runs that have results; settings without any are left out.
std::vector<Setting> finished(std::vector<Setting> settings) {
  for (Setting& setting : settings) {
    std::erase_if(setting.runs, [](const ComparedRun& run) { return run.checkpoints.empty(); });
  }
  std::erase_if(settings, [](const Setting& setting) { return setting.runs.empty(); });
  return settings;
}

std::vector<MetricComparison> compare(const std::vector<Setting>& settings, ordered_json& notes) {
  std::vector<MetricComparison> comparisons;
  if (settings.empty()) return comparisons;
  try {
    for (const std::string& metric : choose_metrics(settings, {})) {
      comparisons.push_back(compare_metric(settings, metric));
      for (size_t i = 1; i < settings.size(); ++i) {
        const std::vector<int64_t>& seeds = comparisons.back().differences[i - 1].other_images;
        if (seeds.empty()) continue;
        notes.push_back(fmt::format("{}: settings {} and {} were not evaluated on the same images (seed {}).", metric,
                                    settings[0].name, settings[i].name, fmt::join(seeds, ", ")));
      }
    }
  } catch (const RunError& problem) {
    notes.push_back(fmt::format("The runs are not compared: {}", problem.what()));
  }
  return comparisons;
}

ordered_json range(const MeanInterval& interval) {
  return {{"mean", finite_or_null(interval.mean)},
          {"low", finite_or_null(interval.mean - interval.half_width)},
          {"high", finite_or_null(interval.mean + interval.half_width)},
          {"warning", interval.deserves_warning()}};
}

ordered_json to_json(const std::string& metric, const Setting& setting, const SettingValues& values) {
  ordered_json object = range(values.interval);
  object["setting"] = setting.name;
  object["checkpoints"] = values.checkpoints;
  object["text"] = format_interval(values.interval, unit_of(metric));
  object["values"] = ordered_json::array();
  for (const double value : values.values) object["values"].push_back(finite_or_null(value));
  if (values.size_interval) object["size"] = format_interval(*values.size_interval, Unit::kPlain);
  return object;
}

ordered_json to_json(const std::string& metric, const Setting& setting, const SettingDifference& difference) {
  ordered_json object = difference.seeds.empty() ? ordered_json::object() : range(difference.interval);
  object["setting"] = setting.name;
  object["text"] =
      difference.seeds.empty() ? "no seed in common" : format_difference(difference.interval, unit_of(metric));
  if (difference.size_interval) object["size"] = format_difference(*difference.size_interval, Unit::kPlain);
  return object;
}

ordered_json comparison_page_json(const std::vector<Setting>& settings,
                                  const std::vector<MetricComparison>& comparisons) {
  ordered_json page{{"keys", ordered_json::array()}, {"metrics", ordered_json::array()}};
  for (const DifferingKey& key : differing_keys(settings)) {
    ordered_json values = ordered_json::array();
    for (const std::string& value : key.values)
      values.push_back(value.empty() ? ordered_json(nullptr) : ordered_json(value));
    page["keys"].push_back({key.path, values});
  }
  for (const MetricComparison& comparison : comparisons) {
    ordered_json metric{{"metric", comparison.metric},
                        {"fraction", unit_of(comparison.metric) == Unit::kFraction},
                        {"against", settings.front().name},
                        {"settings", ordered_json::array()},
                        {"differences", ordered_json::array()}};
    for (size_t i = 0; i < settings.size(); ++i) {
      metric["settings"].push_back(to_json(comparison.metric, settings[i], comparison.settings[i]));
      if (i > 0)
        metric["differences"].push_back(to_json(comparison.metric, settings[i], comparison.differences[i - 1]));
    }
    page["metrics"].push_back(std::move(metric));
  }
  return page;
}

// The names of the curves that any of the runs has.
std::vector<std::string> curves_of(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) {
    for (const std::string& name : curve_names(setting.runs.front().config)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// The run of a setting with the best value of `metric` on validation, or on the split that it names where that was
// not evaluated; of equal ones the first.
struct BestRun {
  const ComparedRun* run = nullptr;
  std::string metric;
};

BestRun best_run(const Setting& setting, const std::string& metric) {
  const std::string on_validation = "val/" + name_of_metric(metric);
  const auto value = [](const ComparedRun& run, const std::string& name) {
    return find_value(checkpoint_for(run, name), name);
  };
  const bool validated = std::all_of(setting.runs.begin(), setting.runs.end(),
                                     [&](const ComparedRun& run) { return value(run, on_validation).has_value(); });
  BestRun best{nullptr, validated ? on_validation : metric};
  std::optional<double> best_value;
  for (const ComparedRun& run : setting.runs) {
    const std::optional<double> now = value(run, best.metric);
    if (best.run && (!now || (best_value && !is_better_by_name(best.metric, *now, *best_value)))) continue;
    best.run = &run;
    best_value = now;
  }
  return best;
}

std::string why_shown(const Setting& setting, const BestRun& best, size_t settings) {
  const std::string others =
      settings > kShownRuns ? fmt::format(", one of the first {} settings of {}", kShownRuns, settings) : "";
  if (setting.runs.size() > 1) {
    return fmt::format("The best of setting {}'s {} runs by {}{}.", setting.name, setting.runs.size(), best.metric,
                       others);
  }
  return settings > 1 ? fmt::format("The run of setting {}{}.", setting.name, others) : "";
}

ordered_json shown_run(const Registries& registries, at::Device device, const ComparedRun& run,
                       const std::string& metric, bool with_answers, const std::vector<std::string>& settings,
                       ProgressBar& bar) {
  const std::string checkpoint = checkpoint_for(run, metric).name;
  const std::string split = split_of_metric(metric);
  ordered_json shown{{"checkpoint", checkpoint}, {"split", split}, {"set_sizes", ordered_json::array()}};
  try {
    shown["set_sizes"] = set_sizes_json(run, checkpoint, split);
    if (!with_answers) {
      shown["missing"] = "Left out by --no-examples.";
      return shown;
    }
    shown["answers"] = answers_json(evaluate_answers(registries, device, run.folder, checkpoint, settings, bar));
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& problem) {  // out of memory, too: the rest of the report is worth having
    bar.hide();
    shown["missing"] = problem.what();
    log::warning(fmt::format("[report] '{}' is shown without accuracies by class, confusions and examples: {}",
                             run.folder.string(), problem.what()));
  }
  return shown;
}

}  // namespace

ordered_json report_data(const Registries& registries, at::Device device, const std::vector<fs::path>& folders,
                         bool with_answers, const std::vector<std::string>& settings_over, ProgressBar& bar) {
  ordered_json notes = ordered_json::array(), runs = ordered_json::array(), shown = ordered_json::array();
  const auto all = group_runs(read_all(experiment_schema(registries), folders, notes));
  ordered_json curves = ordered_json::array();
  const std::vector<std::string> names = curves_of(all);
  for (const std::string& name : names) {
    curves.push_back({{"name", name}, {"fraction", unit_of(name) == Unit::kFraction}});
  }
  std::vector<fs::path> places;  // of the runs in "runs"
  for (const Setting& setting : all) {
    for (const ComparedRun& run : setting.runs) {
      runs.push_back(run_json(run, setting.name, names, notes));
      places.push_back(run.folder);
    }
  }
  const std::vector<Setting> settings = finished(all);
  const std::vector<MetricComparison> comparisons = compare(settings, notes);
  ordered_json comparison = nullptr;
  if (!comparisons.empty()) {
    comparison = comparison_page_json(settings, comparisons);
    const std::string& metric = comparisons.front().metric;
    for (size_t i = 0; i < std::min(settings.size(), kShownRuns); ++i) {
      const BestRun best = best_run(settings[i], metric);
      ordered_json page_run{{"run", std::find(places.begin(), places.end(), best.run->folder) - places.begin()},
                            {"why", why_shown(settings[i], best, settings.size())}};
      page_run.update(shown_run(registries, device, *best.run, metric, with_answers, settings_over, bar));
      shown.push_back(std::move(page_run));
    }
  }
  std::string title = runs.size() == 1 ? runs.front()["name"].get<std::string>() : fmt::format("{} runs", runs.size());
  return {{"title", std::move(title)},
          {"settrain", fmt::format("{} ({})", build_info().version, build_info().git_commit)},
          {"date", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))},
          {"notes", std::move(notes)},
          {"runs", std::move(runs)},
          {"curves", std::move(curves)},
          {"comparison", std::move(comparison)},
          {"shown", std::move(shown)}};
}

}  // namespace settrain
