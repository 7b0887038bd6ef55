#include "src/studies/sweep/sweep_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "src/core/mean_interval.h"
#include "src/core/metric_name.h"
#include "src/core/table_text.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

void add_name(Names& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// The keys that any run sets, in the order in which they come up.
Names all_keys(const std::vector<SweepRow>& rows) {
  Names keys;
  for (const SweepRow& row : rows) {
    for (const auto& entry : row.point->varied) add_name(keys, entry.first);
  }
  return keys;
}

std::string value_of(const Settings& settings, const std::string& key) {
  const std::string* value = find_setting(settings, key);
  return value ? *value : "";
}

// The runs of one setting, one a seed.
struct Setting {
  Settings varied;
  std::vector<const SweepRow*> finished{};
  size_t runs = 0;

  std::vector<double> values(const std::string& metric) const {
    std::vector<double> all;
    for (const SweepRow* row : finished) all.push_back(row->result->metric(metric));
    return all;
  }
  double mean(const std::string& metric) const { return mean_interval(values(metric)).mean; }
};

std::vector<Setting> settings_of(const std::vector<SweepRow>& rows) {
  std::vector<Setting> settings;
  for (const SweepRow& row : rows) {
    auto known = std::find_if(settings.begin(), settings.end(),
                              [&](const Setting& setting) { return setting.varied == row.point->varied; });
    if (known == settings.end()) known = settings.insert(settings.end(), Setting{.varied = row.point->varied});
    ++known->runs;
    if (row.result) known->finished.push_back(&row);
  }
  return settings;
}

// Sets of average-K and of set rules have no fixed size: "val/avg5" has "val/avg5_size" beside it.
Names with_sizes(const Names& metrics) {
  Names all;
  for (const std::string& metric : metrics) {
    add_name(all, metric);
    if (const std::string size = size_metric(metric); !size.empty()) add_name(all, size);
  }
  return all;
}

Names interval_cells(const Setting& setting, const Names& metrics) {
  Names cells;
  for (const std::string& metric : metrics) {
    const auto values = setting.values(metric);
    cells.push_back(values.empty() ? "" : format_interval(mean_interval(values), unit_of(metric)));
  }
  return cells;
}

Names setting_cells(const Setting& setting, const Names& keys) {
  Names cells;
  for (const std::string& key : keys) cells.push_back(value_of(setting.varied, key));
  return cells;
}

Names joined(Names first, const Names& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The best by the mean of the validation metric, of those with every seed finished; the first of equals.
const Setting* best_of(const std::vector<const Setting*>& settings, const std::string& select) {
  const Setting* best = nullptr;
  for (const Setting* setting : settings) {
    if (setting->finished.empty() || setting->finished.size() < setting->runs) continue;
    if (std::isnan(setting->mean(select))) continue;
    if (!best || is_better(select, setting->mean(select), best->mean(select))) best = setting;
  }
  return best;
}

std::string chosen_table(const Grid& grid, const std::vector<Setting>& settings, const Names& keys) {
  std::map<Names, std::vector<const Setting*>> groups;
  std::vector<Names> order;
  for (const Setting& setting : settings) {
    const Names group = setting_cells(setting, grid.per);
    if (groups[group].empty()) order.push_back(group);
    groups[group].push_back(&setting);
  }
  const Names metrics = with_sizes(joined({grid.select}, grid.report));
  std::string text = fmt::format("\n## Chosen by {}\n\n", grid.select);
  if (!grid.per.empty()) text += fmt::format("One for each value of {}. ", fmt::join(grid.per, ", "));
  std::vector<Names> rows;
  for (const Names& group : order) {
    const Setting* best = best_of(groups[group], grid.select);
    if (best) rows.push_back(joined(setting_cells(*best, keys), interval_cells(*best, metrics)));
  }
  return text + "Only settings whose seeds are all finished can be chosen.\n\n" +
         markdown_table(joined(keys, metrics), rows);
}

std::string remarks(const std::vector<Setting>& settings, const std::vector<SweepRow>& rows) {
  std::string text;
  const bool two =
      std::any_of(settings.begin(), settings.end(), [](const Setting& s) { return s.finished.size() == 2; });
  const bool several =
      std::any_of(settings.begin(), settings.end(), [](const Setting& s) { return s.finished.size() > 1; });
  text += "\nAccuracies in percent.";
  if (several) text += " ± is half of a 95 % interval for the mean over seeds, by Student's t.";
  text += "\n";
  if (two) text += "With two seeds it is 12.7 standard errors wide to each side, and says little: use three or more.\n";
  std::string failed;
  size_t pending = 0;
  for (const SweepRow& row : rows) {
    if (row.status == PointStatus::kFailed) failed += fmt::format("- {}: {}\n", row.point->name, row.failure);
    pending += row.status == PointStatus::kPending || row.status == PointStatus::kStarted;
  }
  if (!failed.empty()) text += "\n## Failed\n\n" + failed;
  if (pending > 0) text += fmt::format("\nStill to come: {} of {} runs.\n", pending, rows.size());
  return text;
}

}  // namespace

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  const Names keys = all_keys(rows);
  Names metrics;
  for (const SweepRow& row : rows) {
    if (!row.result) continue;
    for (const auto& entry : row.result->metrics) add_name(metrics, entry.first);
  }
  std::string text = csv_row(joined(joined({"run"}, keys), joined({"seed", "status", "checkpoint", "epoch"}, metrics)));
  for (const SweepRow& row : rows) {
    Names cells{row.point->name};
    for (const std::string& key : keys) cells.push_back(value_of(row.point->varied, key));
    cells.push_back(row.point->seed);
    cells.emplace_back(name_of(row.status));
    cells.push_back(row.result ? row.result->checkpoint : "");
    cells.push_back(row.result ? std::to_string(row.result->epoch) : "");
    for (const std::string& metric : metrics) {
      const double value = row.result ? row.result->metric(metric) : NAN;
      cells.push_back(std::isnan(value) ? "" : fmt::format("{}", value));
    }
    text += csv_row(cells);
  }
  return text;
}

std::string sweep_markdown(const Grid& grid, const std::string& title, const std::vector<SweepRow>& rows) {
  const std::vector<Setting> settings = settings_of(rows);
  std::vector<Settings> varied;
  for (const Setting& setting : settings) varied.push_back(setting.varied);
  const Names keys = varying_keys(varied);
  const Names metrics = with_sizes({grid.select});
  std::vector<Names> lines;
  for (const Setting& setting : settings) {
    lines.push_back(joined(setting_cells(setting, keys), interval_cells(setting, metrics)));
  }
  return fmt::format("# {}\n\n", title) + markdown_table(joined(keys, metrics), lines) +
         chosen_table(grid, settings, keys) + remarks(settings, rows);
}

}  // namespace settrain
