#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/studies/compare/comparison.h"

namespace settrain {
namespace {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) line += fmt::format("{:<{}}  ", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string format_settings(const std::vector<Setting>& settings) {
  std::vector<std::vector<std::string>> rows{{"setting", "seed", "run"}};
  for (const Setting& setting : settings) {
    for (const ComparedRun& run : setting.runs) {
      rows.push_back(
          {&run == &setting.runs.front() ? setting.name : "", std::to_string(run.seed), run.folder.string()});
    }
  }
  return table(rows);
}

std::string format_keys(const std::vector<Setting>& settings) {
  if (settings.size() < 2) return "";
  std::vector<std::vector<std::string>> rows{{"key"}};
  for (const Setting& setting : settings) rows[0].push_back(setting.name);
  for (const DifferingKey& key : differing_keys(settings)) {
    rows.push_back({key.path});
    for (const std::string& value : key.values) rows.back().push_back(value.empty() ? "-" : value);
  }
  return rows.size() > 1 ? table(rows) : "no key differs: the runs repeat each other\n";
}

std::string mark(const MeanInterval& interval) {
  return interval.deserves_warning() ? " !" : "";
}

// The number of seeds stands beside the accuracy.
std::string format_size(const MeanInterval& size, bool signed_value) {
  std::string text = ", size " + format_value(size.mean, Unit::kPlain, signed_value);
  if (size.has_interval()) text += " ± " + format_value(size.half_width, Unit::kPlain);
  return text;
}

std::string format(const BootstrapInterval& interval, Unit unit) {
  return fmt::format("{} [{}, {}]", format_value(interval.difference, unit, true),
                     format_value(interval.low, unit, true), format_value(interval.high, unit, true));
}

std::string format_difference(const SettingDifference& difference, const std::string& pair, Unit unit) {
  if (difference.seeds.empty()) return fmt::format("  {}  no seed in common\n", pair);
  std::string text = fmt::format("  {}  {}", pair, settrain::format_difference(difference.interval, unit));
  if (difference.size_interval) text += format_size(*difference.size_interval, true);
  text += mark(difference.interval) + "\n";
  if (!difference.other_images.empty()) {
    text += fmt::format("  {}  not on the same images: seed{} {}\n", pair,
                        difference.other_images.size() == 1 ? "" : "s", fmt::join(difference.other_images, ", "));
  }
  for (const SeedBootstrap& bootstrap : difference.bootstraps) {
    text += fmt::format("  {}  {}", pair, format(bootstrap.interval, unit));
    if (bootstrap.size_interval) text += ", size " + format(*bootstrap.size_interval, Unit::kPlain);
    text += fmt::format(" over images (seed {}, {} resamples of {} images)\n", bootstrap.seed, bootstrap.resamples,
                        bootstrap.images);
  }
  return text;
}

// "test/top5, of best-val-top5", or of which checkpoint in which setting.
std::string title(const std::vector<Setting>& settings, const MetricComparison& comparison) {
  const auto& all = comparison.settings;
  const bool same = std::all_of(all.begin(), all.end(),
                                [&](const SettingValues& values) { return values.checkpoints == all[0].checkpoints; });
  if (same) return fmt::format("{}, of {}", comparison.metric, fmt::join(all[0].checkpoints, " or "));
  std::string text = comparison.metric;
  for (size_t i = 0; i < settings.size(); ++i) {
    text += fmt::format("{} of {} in {}", i == 0 ? "," : ";", fmt::join(all[i].checkpoints, " or "), settings[i].name);
  }
  return text;
}

std::string format_metric(const std::vector<Setting>& settings, const MetricComparison& comparison) {
  const Unit unit = unit_of(comparison.metric);
  std::string text = "\n" + title(settings, comparison) + "\n";
  const size_t width = settings.size() > 1 ? settings.back().name.size() + 4 : 1;
  for (size_t i = 0; i < settings.size(); ++i) {
    const SettingValues& values = comparison.settings[i];
    text += fmt::format("  {:<{}}  {}", settings[i].name, width, format_interval(values.interval, unit));
    if (values.size_interval) text += format_size(*values.size_interval, false);
    text += mark(values.interval) + "\n";
  }
  for (size_t i = 1; i < settings.size(); ++i) {
    const std::string pair = fmt::format("{:<{}}", settings[i].name + " - " + settings[0].name, width);
    text += format_difference(comparison.differences[i - 1], pair, unit);
  }
  return text;
}

std::string explanation(const std::vector<MetricComparison>& comparisons) {
  bool has_interval = false, has_warning = false, has_bootstrap = false;
  const auto look_at = [&](const MeanInterval& interval) {
    has_interval = has_interval || interval.has_interval();
    has_warning = has_warning || interval.deserves_warning();
  };
  for (const MetricComparison& comparison : comparisons) {
    for (const SettingValues& values : comparison.settings) look_at(values.interval);
    for (const SettingDifference& difference : comparison.differences) {
      look_at(difference.interval);
      has_bootstrap = has_bootstrap || !difference.bootstraps.empty();
    }
  }
  std::string text = "\nAccuracies in percent. ";
  text += has_interval ? "±: the 95 % interval of the mean over seeds (Student's t); of differences, over pairs of one "
                         "seed.\n"
                       : "One seed says nothing of how much seeds vary.\n";
  if (has_bootstrap) {
    text += "[ ]: the 95 % interval of the difference of two trained models, over images drawn with replacement.\n";
  }
  if (has_warning) text += "!: two seeds, whose interval is 12.7 standard errors to either side; train more of them.\n";
  return text;
}

}  // namespace

std::string format_comparison(const std::vector<Setting>& settings, const std::vector<MetricComparison>& comparisons) {
  std::string text = format_settings(settings);
  if (settings.size() > 1) text += "\n" + format_keys(settings);
  for (const MetricComparison& comparison : comparisons) text += format_metric(settings, comparison);
  return text + explanation(comparisons);
}

}  // namespace settrain
