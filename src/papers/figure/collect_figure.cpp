#include "src/papers/figure/collect_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>

#include "src/core/error.h"
#include "src/core/mean_interval.h"
#include "src/papers/design/cell_runs.h"
#include "src/papers/figure/run_numbers.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

using Quantity = FigureAxis::Quantity;

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
        for (const size_t column : panel_.columns) made.series.push_back(series_of_cell(row, column));
      }
    } else if (panel_.x.quantity == Quantity::kColumns) {
      for (const size_t row : panel_.rows) {
        made.series.push_back(series_along(figure_.rows.each[row].label, panel_.columns, figure_.columns,
                                           [row](size_t column) { return std::pair(row, column); }));
      }
    } else {
      for (const size_t column : panel_.columns) {
        made.series.push_back(series_along(figure_.columns.each[column].label, panel_.rows, figure_.rows,
                                           [column](size_t row) { return std::pair(row, column); }));
      }
    }
    return made;
  }

 private:
  using Cell = std::pair<size_t, size_t>;

  static ChartAxis chart_axis(const FigureAxis& axis) {
    return {.label = axis.label, .is_log = axis.is_log(), .least = axis.least, .most = axis.most};
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

  ChartSeries series_along(const std::string& name, const std::vector<size_t>& places, const DesignAxis& along,
                           const std::function<Cell(size_t)>& cell_at) {
    ChartSeries series{.name = name};
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string& label = along.each[places[i]].label;
      const auto [row, column] = cell_at(places[i]);
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
            fmt::format("{}, {}: ({:.6g}, {:.6g}) has no place on a logarithmic axis", name, label, x, y->mean));
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

  ChartSeries series_of_cell(size_t row, size_t column) {
    ChartSeries series{.name = name_of_cell(row, column)};
    series.points = panel_.x.quantity == Quantity::kEpochs ? points_by_epoch(row, column) : points_by_size(row, column);
    return series;
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

// How many seeds stand behind a panel's points, and what becomes of them.
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
  tidy_remarks(filled.remarks);
  return filled;
}

}  // namespace settrain
