#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/mean_interval.h"
#include "src/data_tools/stats_files.h"
#include "src/papers/design/cells.h"
#include "src/papers/figure/paper_figure.h"
#include "src/run_folder/metrics_log.h"
#include "src/run_folder/run_folder.h"
#include "src/studies/sweep/sweep_folder.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using Quantity = FigureAxis::Quantity;

// The value in the unit of the figure's axes.
double shown(double value, const FigureAxis& axis, const std::string& metric) {
  const double right = axis.is_error ? 1 - value : value;
  return unit_of(metric) == Unit::kFraction ? 100 * right : right;
}

// Nothing where there is no such value, or it is NaN.
const double* find_value(const std::vector<std::pair<std::string, double>>& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
  return found == values.end() || std::isnan(found->second) ? nullptr : &found->second;
}

// Reads the files of finished runs once, whatever is asked for. All functions throw RunError where a file cannot be
// read, or has lost rows.
class RunNumbers {
 public:
  explicit RunNumbers(const config::Schema& schema) : schema_(schema) {}

  // A metric of the results, of the checkpoint that is best by `select`, or of an epoch. In percent where it is a
  // fraction; nothing where the run has none.
  std::optional<double> value(const fs::path& run, const FigureAxis& axis, const std::string& metric,
                              const std::string& select) {
    const double* found = nullptr;
    if (axis.source == FigureSource::kResults) {
      found = find_value(result(run, select).metrics, metric);
    } else if (const std::vector<MetricsRow>& all = epochs(run); !all.empty()) {
      found = find_value((axis.source == FigureSource::kFirstEpoch ? all.front() : all.back()).values, metric);
    }
    return found ? std::optional(shown(*found, axis, metric)) : std::nullopt;
  }

  // A metric of every epoch that has it: (epoch, value).
  std::vector<std::pair<double, double>> by_epoch(const fs::path& run, const FigureAxis& axis,
                                                  const std::string& metric) {
    std::vector<std::pair<double, double>> all;
    for (const MetricsRow& row : epochs(run)) {
      const double* found = find_value(row.values, metric);
      if (found) all.emplace_back(static_cast<double>(row.epoch), shown(*found, axis, metric));
    }
    return all;
  }

  // How many images got sets of 0, 1, ... classes; empty where the results have none of that metric ("test/avg5").
  std::vector<int64_t> set_sizes(const fs::path& run, const std::string& metric, const std::string& select) {
    for (const auto& [name, counts] : result(run, select).set_sizes) {
      if (name == metric) return counts;
    }
    return {};
  }

  // On the runs that were read.
  std::vector<std::string> remarks() const {
    std::vector<std::string> all = remarks_;
    all.insert(all.end(), images_.remarks().begin(), images_.remarks().end());
    return all;
  }

 private:
  const PointResult& result(const fs::path& run, const std::string& select) {
    const std::pair key(run, select);
    if (const auto known = results_.find(key); known != results_.end()) return known->second;
    const PointResult& result = results_.emplace(key, read_result(run, select)).first->second;
    images_.add(run, result);
    if (result.chose_nothing)
      remarks_.push_back(fmt::format("{}: {}", run.string(), chose_nothing_text(select, result)));
    return result;
  }

  const std::vector<MetricsRow>& epochs(const fs::path& run) {
    if (!epochs_.contains(run)) {
      const RunFolder folder = RunFolder::open_existing(run);
      const auto finished = config::load_recorded(schema_, folder.config()).get<int64_t>("train.epochs");
      epochs_.emplace(run, read_metrics(folder.metrics_jsonl(), finished));
    }
    return epochs_.at(run);
  }

  const config::Schema& schema_;
  std::map<std::pair<fs::path, std::string>, PointResult> results_;
  ImageComparison images_;
  std::vector<std::string> remarks_;
  std::map<fs::path, std::vector<MetricsRow>> epochs_;
};

// One panel's way from runs to points.
class PanelMaker {
 public:
  PanelMaker(const PaperFigure& figure, const FigurePanel& panel, const CellRuns& runs, RunNumbers& numbers,
             std::vector<std::string>& remarks)
      : figure_(figure), panel_(panel), runs_(runs), numbers_(numbers), remarks_(remarks) {}

  ChartPanel make() {
    ChartPanel made{.title = panel_.title,
                    .kind = panel_.kind,
                    .x = chart_axis(panel_.x),
                    .y = chart_axis(panel_.y),
                    .categories = categories()};
    if (panel_.x.quantity == Quantity::kEpochs || panel_.x.quantity == Quantity::kSetSizes) {
      for (const size_t row : panel_.rows) {
        for (const size_t column : panel_.columns) {
          made.series.push_back({name_of_cell(row, column), panel_.x.quantity == Quantity::kEpochs
                                                                ? points_by_epoch(row, column)
                                                                : points_by_size(row, column)});
        }
      }
    } else {
      const bool is_along_columns = panel_.x.quantity == Quantity::kColumns;
      for (const size_t fixed : is_along_columns ? panel_.rows : panel_.columns) {
        made.series.push_back(series_along(is_along_columns, fixed));
      }
    }
    // A preset's numbers do not compare with the paper's.
    if (figure_.has_preset()) made.y.mark.reset();
    return made;
  }

 private:
  static ChartAxis chart_axis(const FigureAxis& axis) {
    return {.label = axis.label, .is_log = axis.is_log(), .least = axis.least, .most = axis.most, .mark = axis.mark};
  }

  std::vector<std::string> categories() const {
    std::vector<std::string> labels;
    if (!panel_.x.is_of_labels() || panel_.x.is_of_numbers()) return labels;
    const bool is_rows = panel_.x.quantity == Quantity::kRows;
    for (const size_t place : is_rows ? panel_.rows : panel_.columns) {
      labels.push_back((is_rows ? figure_.rows : figure_.columns).each[place].label);
    }
    return labels;
  }

  // A run whose files cannot be read, or that has no such number, is a remark.
  void each_run(
      size_t row, size_t column, const FigureAxis& axis,
      const std::function<bool(const fs::path&, const std::string& metric, const std::string& select)>& take) {
    const size_t column_of_runs = axis.column.value_or(column);
    const std::string metric = figure_.metric_of(axis, row, column),
                      select = figure_.substitute(panel_.select, row, column);
    for (const auto& [seed, run] : runs_.by_cell.at({row, column_of_runs})) {
      try {
        if (!take(run, metric, select)) remarks_.push_back(fmt::format("{}: has no {}", run.string(), metric));
      } catch (const RunError& problem) {
        remarks_.push_back(problem.what());
      }
    }
  }

  std::optional<MeanInterval> mean_of(size_t row, size_t column, const FigureAxis& axis) {
    std::vector<double> values;
    each_run(row, column, axis, [&](const fs::path& run, const std::string& metric, const std::string& select) {
      const auto value = numbers_.value(run, axis, metric, select);
      if (value) values.push_back(*value);
      return value.has_value();
    });
    return values.empty() ? std::nullopt : std::optional(mean_interval(values));
  }

  static ChartPoint point_at(double x, const MeanInterval& y) {
    ChartPoint point{.x = x, .y = y.mean};
    if (!y.has_interval() || y.deserves_warning()) return point;
    point.below = y.mean - y.half_width;
    point.above = y.mean + y.half_width;
    return point;
  }

  // The cells of the row `fixed` along the columns, or of the column `fixed` along the rows.
  ChartSeries series_along(bool is_along_columns, size_t fixed) {
    const std::vector<size_t>& places = is_along_columns ? panel_.columns : panel_.rows;
    const DesignAxis& along = is_along_columns ? figure_.columns : figure_.rows;
    ChartSeries series{.name = (is_along_columns ? figure_.rows : figure_.columns).each[fixed].label};
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string& label = along.each[places[i]].label;
      const size_t row = is_along_columns ? fixed : places[i], column = is_along_columns ? places[i] : fixed;
      const auto y = mean_of(row, column, panel_.y);
      auto x = static_cast<double>(i);
      if (panel_.x.is_of_numbers()) x = std::strtod(label.c_str(), nullptr);
      if (panel_.x.quantity == Quantity::kMetric) {
        const auto mean = mean_of(row, column, panel_.x);
        if (!mean) continue;
        x = mean->mean;
      }
      if (!y) continue;
      if ((panel_.x.is_log() && x <= 0) || (panel_.y.is_log() && y->mean <= 0)) {
        remarks_.push_back(
            fmt::format("{}, {}: ({:.6g}, {:.6g}) has no place on a logarithmic axis", series.name, label, x, y->mean));
        continue;
      }
      series.points.push_back(point_at(x, *y));
      if (panel_.x.quantity == Quantity::kMetric) series.points.back().label = label;
    }
    // Lines go from left to right.
    if (panel_.x.is_of_numbers()) {
      std::stable_sort(series.points.begin(), series.points.end(),
                       [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    }
    return series;
  }

  std::string name_of_cell(size_t row, size_t column) const {
    const std::string &of_row = figure_.rows.each[row].label, &of_column = figure_.columns.each[column].label;
    if (panel_.rows.size() == 1) return of_column;
    return panel_.columns.size() == 1 ? of_row : fmt::format("{}, {}", of_row, of_column);
  }

  std::vector<ChartPoint> points_by_epoch(size_t row, size_t column) {
    std::map<double, std::vector<double>> values;
    each_run(row, column, panel_.y, [&](const fs::path& run, const std::string& metric, const std::string&) {
      const auto all = numbers_.by_epoch(run, panel_.y, metric);
      for (const auto& [epoch, value] : all) values[epoch].push_back(value);
      return !all.empty();
    });
    std::vector<ChartPoint> points;
    for (const auto& [epoch, all] : values) {
      const ChartPoint point = point_at(epoch, mean_interval(all));
      if (!panel_.y.is_log() || point.y > 0) points.push_back(point);
    }
    return points;
  }

  // Percent of all images, of all seeds together, up to the largest set that there is.
  std::vector<ChartPoint> points_by_size(size_t row, size_t column) {
    std::vector<int64_t> counts;
    each_run(row, column, panel_.y, [&](const fs::path& run, const std::string& metric, const std::string& select) {
      const std::vector<int64_t> of_run = numbers_.set_sizes(run, metric, select);
      counts.resize(std::max(counts.size(), of_run.size()));
      for (size_t size = 0; size < of_run.size(); ++size) counts[size] += of_run[size];
      return !of_run.empty();
    });
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    int64_t images = 0;
    for (const int64_t count : counts) images += count;
    std::vector<ChartPoint> points;
    for (size_t size = 0; size < counts.size(); ++size) {
      points.push_back(
          {.x = static_cast<double>(size), .y = 100 * static_cast<double>(counts[size]) / static_cast<double>(images)});
    }
    return points;
  }

  const PaperFigure& figure_;
  const FigurePanel& panel_;
  const CellRuns& runs_;
  RunNumbers& numbers_;
  std::vector<std::string>& remarks_;
};

// The number of seeds behind a panel's points, and whether the points are means or sums over them.
std::string seeds_text(const ChartPanel& chart, const FigurePanel& panel, const CellRuns& runs) {
  size_t fewest = std::numeric_limits<size_t>::max(), most = 0;
  for (const size_t row : panel.rows) {
    for (const size_t column : panel.columns) {
      const size_t seeds = runs.by_cell.at({row, panel.y.column.value_or(column)}).size();
      if (seeds > 0) fewest = std::min(fewest, seeds);
      most = std::max(most, seeds);
    }
  }
  if (!has_points(chart)) return "";
  if (most == 1) return "One seed.";
  const std::string seeds = fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  if (panel.x.quantity == Quantity::kSetSizes) return fmt::format("Images of {} seeds together.", seeds);
  const bool has_intervals = std::any_of(chart.series.begin(), chart.series.end(), [](const ChartSeries& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const ChartPoint& point) { return point.below.has_value(); });
  });
  return fmt::format("Means over {} seeds{}.", seeds, has_intervals ? ", 95 % intervals" : "");
}

}  // namespace

FilledFigure collect_figure(const PaperFigure& figure, const config::Schema& schema, const std::vector<fs::path>& runs,
                            bool of_figure_only) {
  CellRuns found = find_cell_runs(figure, figure.wanted_cells(), schema, runs, of_figure_only);
  FilledFigure filled{.charts = {}, .wanted = found.wanted, .found = found.found, .remarks = std::move(found.remarks)};
  RunNumbers numbers(schema);
  for (const std::string& number : figure.numbers()) {
    Chart chart{.name = figure.chart_name(number), .title = figure.title, .subtitle = {}, .panels = {}};
    std::vector<std::string> subtitle{figure.origin()};
    for (const FigurePanel& panel : figure.panels) {
      if (panel.number != number) continue;
      chart.panels.push_back(PanelMaker(figure, panel, found, numbers, filled.remarks).make());
      add_once(subtitle, seeds_text(chart.panels.back(), panel, found));
    }
    std::erase(subtitle, "");
    chart.subtitle = fmt::format("{}", fmt::join(subtitle, " "));
    filled.charts.push_back(std::move(chart));
  }
  const std::vector<std::string> of_runs = numbers.remarks();
  filled.remarks.insert(filled.remarks.end(), of_runs.begin(), of_runs.end());
  tidy_remarks(filled.remarks);
  return filled;
}

config::Config lorenz_config(const PaperFigure& figure, const config::Schema& schema) {
  Settings settings = figure.common;
  settings.insert(settings.end(), figure.preset_settings.begin(), figure.preset_settings.end());
  return config::load(schema, figure.base, overrides_of(settings));
}

Chart lorenz_chart(const PaperFigure& figure, const Dataset& dataset) {
  std::vector<int64_t> counts(static_cast<size_t>(dataset.num_classes()), 0);
  int64_t images = 0;
  for (const Split* split : {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test}) {
    const std::vector<int64_t> of_split = count_classes(*split, dataset.num_classes());
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += of_split[i];
    images += split->size();
  }
  const std::string origin = figure.origin();
  return {.name = figure.chart_name(""),
          .title = figure.title,
          .subtitle = fmt::format("{}{}{} images of {} classes, all splits.", origin, origin.empty() ? "" : " ", images,
                                  counts.size()),
          .panels = {lorenz_panel({{dataset.name, counts}})}};
}

}  // namespace settrain
