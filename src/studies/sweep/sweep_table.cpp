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
#include "src/studies/sweep/run_sweep.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

void add_name(Names& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// The values of the keys, empty where one is not set.
Names setting_cells(const Settings& settings, const Names& keys) {
  Names cells;
  for (const std::string& key : keys) {
    const std::string* value = find_setting(settings, key);
    cells.push_back(value ? *value : "");
  }
  return cells;
}

// The runs of one setting, one for each seed.
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

Names joined(Names first, const Names& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The setting whose mean of the validation metric is best, among those with every seed finished; the first of equals.
const Setting* best_of(const std::vector<const Setting*>& settings, const std::string& select) {
  const Setting* best = nullptr;
  for (const Setting* setting : settings) {
    if (setting->finished.empty() || setting->finished.size() < setting->runs) continue;
    if (std::isnan(setting->mean(select))) continue;
    if (!best || is_better_by_name(select, setting->mean(select), best->mean(select))) best = setting;
  }
  return best;
}

std::string chosen_table(const Grid& grid, const std::vector<Setting>& settings, const Names& keys) {
  std::map<Names, std::vector<const Setting*>> groups;
  std::vector<Names> order;
  for (const Setting& setting : settings) {
    const Names group = setting_cells(setting.varied, grid.per);
    if (groups[group].empty()) order.push_back(group);
    groups[group].push_back(&setting);
  }
  const Names metrics = with_sizes(joined({grid.select}, grid.report));
  std::string text = fmt::format("\n## Chosen by {}\n\n", grid.select);
  if (!grid.per.empty()) text += fmt::format("One for each value of {}. ", fmt::join(grid.per, ", "));
  std::vector<Names> rows;
  for (const Names& group : order) {
    const Setting* best = best_of(groups[group], grid.select);
    if (best) rows.push_back(joined(setting_cells(best->varied, keys), interval_cells(*best, metrics)));
  }
  return text + "Only settings whose seeds are all finished can be chosen.\n\n" +
         markdown_table(joined(keys, metrics), rows);
}

std::string remarks(const Grid& grid, const std::vector<Setting>& settings, const std::vector<SweepRow>& rows) {
  std::string text = "\nAccuracies in percent.";
  const auto any = [&settings](auto has) { return std::any_of(settings.begin(), settings.end(), has); };
  if (any([](const Setting& setting) { return setting.finished.size() > 1; }))
    text += " ± is half of a 95 % interval for the mean over seeds, by Student's t.";
  text += "\n";
  if (any([](const Setting& setting) { return setting.finished.size() == 2; }))
    text += "With two seeds it is 12.7 standard errors wide to each side, and says little: use three or more.\n";
  std::string failed, unchosen;
  size_t pending = 0;
  ImageComparison images;
  for (const SweepRow& row : rows) {
    if (row.result) images.add(row.point->name, *row.result);
    if (row.result && row.result->chose_nothing)
      unchosen += fmt::format("- {}: {}\n", row.point->name, chose_nothing_text(grid.select, *row.result));
    if (row.status == PointStatus::kFailed) failed += fmt::format("- {}: {}\n", row.point->name, row.failure);
    pending += row.status == PointStatus::kPending || row.status == PointStatus::kStarted;
  }
  if (!unchosen.empty()) text += "\n## Not chosen\n\n" + unchosen;
  for (const std::string& remark : images.remarks()) text += "\n" + remark + ".\n";
  if (!failed.empty()) text += "\n## Failed\n\n" + failed;
  if (pending > 0) text += fmt::format("\nStill to come: {} of {} runs.\n", pending, rows.size());
  return text;
}

}  // namespace

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  Names keys, metrics;  // that any run has, in the order in which they come up
  for (const SweepRow& row : rows) {
    for (const auto& [key, value] : row.point->varied) add_name(keys, key);
    if (!row.result) continue;
    for (const auto& [metric, value] : row.result->metrics) add_name(metrics, metric);
  }
  std::string text = csv_row(joined(joined({"run"}, keys), joined({"seed", "status", "checkpoint", "epoch"}, metrics)));
  for (const SweepRow& row : rows) {
    Names cells = joined(joined({row.point->name}, setting_cells(row.point->varied, keys)),
                         {row.point->seed, std::string(name_of(row.status)), row.result ? row.result->checkpoint : "",
                          row.result ? std::to_string(row.result->epoch) : ""});
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
    lines.push_back(joined(setting_cells(setting.varied, keys), interval_cells(setting, metrics)));
  }
  return fmt::format("# {}\n\n", title) + markdown_table(joined(keys, metrics), lines) +
         chosen_table(grid, settings, keys) + remarks(grid, settings, rows);
}

}  // namespace settrain
