#include "src/plot/chart_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/plot/text_size.h"

namespace settrain {
namespace {

constexpr size_t kMostLabels = 10, kFewLabels = 5;
constexpr size_t kFewest = 3, kFewPlaces = 10;
constexpr double kAcross = 430, kBetween = 12;  // pixels: room for the labels of an x axis, and what is between two
constexpr double kMargin = 0.05, kLabelMargin = 0.1;  // of the range, on both sides

bool has_labels(const ChartPanel& panel) {
  return panel.kind == ChartKind::kPoints &&
         std::any_of(panel.series.begin(), panel.series.end(), [](const ChartSeries& series) {
           return std::any_of(series.points.begin(), series.points.end(),
                              [](const ChartPoint& point) { return !point.label.empty(); });
         });
}

double width_of(const std::vector<ChartTick>& ticks) {
  double width = 0;
  for (const ChartTick& tick : ticks) width += tick.label.empty() ? 0 : text_width(tick.label, kText) + kBetween;
  return width;
}

// The range of `values`, wider by a share of it.
void fit(ChartScale& scale, const std::vector<double>& values, bool from_zero, double share) {
  if (values.empty()) {
    scale.least = scale.is_log ? 0.1 : 0;
    scale.most = scale.is_log ? 10 : 1;
    return;
  }
  auto [low, high] =
      std::pair{*std::min_element(values.begin(), values.end()), *std::max_element(values.begin(), values.end())};
  if (scale.is_log) {
    const double margin = low < high ? std::pow(high / low, share) : 2;
    scale.least = low / margin;
    scale.most = high * margin;
    return;
  }
  if (from_zero) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double one_value = low == 0 ? 1 : 0.1 * std::abs(low);
  const double margin = low < high ? share * (high - low) : one_value;
  scale.least = from_zero && low == 0 ? 0 : low - margin;
  scale.most = from_zero && high == 0 ? margin : high + margin;
}

ChartScale scale_of(const ChartAxis& axis, std::vector<double> values, const ChartPanel& panel, bool is_x) {
  ChartScale scale;
  if (!axis.categories.empty()) {
    scale.least = -0.5;
    scale.most = static_cast<double>(axis.categories.size()) - 0.5;
    scale.ticks = category_ticks(axis.categories);
    return scale;
  }
  scale.is_log = axis.is_log;
  // Beside an end that is given only what lies within it counts.
  std::erase_if(values, [&](double value) {
    return (axis.is_log && value <= 0) || (axis.least && value < *axis.least) || (axis.most && value > *axis.most);
  });
  const bool from_zero = panel.kind == ChartKind::kSteps && !is_x && !axis.is_log;
  fit(scale, values, from_zero, has_labels(panel) ? kLabelMargin : kMargin);
  if (axis.least) scale.least = *axis.least;
  if (axis.most) scale.most = *axis.most;
  if (scale.least >= scale.most) {
    // All points lie beyond the one end that is given.
    double& open = axis.least ? scale.most : scale.least;
    if (scale.is_log) {
      open = axis.least ? 10 * scale.least : scale.most / 10;
    } else {
      const double size = std::max(1.0, std::abs(axis.least ? scale.least : scale.most));
      open = axis.least ? scale.least + size : scale.most - size;
    }
  }
  for (size_t labels = kMostLabels; labels >= kFewLabels; --labels) {
    scale.ticks =
        scale.is_log ? log_ticks(scale.least, scale.most, labels) : linear_ticks(scale.least, scale.most, labels);
    if (!is_x || width_of(scale.ticks) <= kAcross) break;
  }
  return scale;
}

// A mark at each of the places where points stand; none where they are many, or leave no room for the labels.
std::vector<ChartTick> ticks_at(std::vector<double> places, const ChartScale& scale) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  if (places.size() < kFewest || places.size() > kFewPlaces) return {};
  std::vector<ChartTick> ticks;
  double end = -std::numeric_limits<double>::infinity();  // of the last label, in pixels
  for (const double at : places) {
    if (at != 0 && (std::abs(at) < 1e-4 || std::abs(at) >= 1e6)) return {};  // not without a power of ten
    ChartTick tick{at, fmt::format("{}", at)};
    const double middle = kAcross * scale.place(at), half = text_width(tick.label, kText) / 2;
    if (middle - half < end + kBetween) return {};
    end = middle + half;
    ticks.push_back(std::move(tick));
  }
  return ticks;
}

// The outer halves of the first and last bin.
void add_bin_ends(const ChartSeries& series, std::vector<double>& values) {
  std::vector<double> x;
  for (const ChartPoint& point : series.points) {
    if (is_drawn(point)) x.push_back(point.x);
  }
  if (x.size() < 2) return;
  std::sort(x.begin(), x.end());
  values.push_back(x[0] - (x[1] - x[0]) / 2);
  values.push_back(x.back() + (x.back() - x[x.size() - 2]) / 2);
}

}  // namespace

double ChartScale::place(double value) const {
  if (is_log && value <= 0) return -std::numeric_limits<double>::infinity();
  if (is_log) return std::log(value / least) / std::log(most / least);
  return (value - least) / (most - least);
}

ChartScale x_scale(const ChartPanel& panel) {
  std::vector<double> values;
  for (const ChartSeries& series : panel.series) {
    for (const ChartPoint& point : series.points) {
      if (is_drawn(point)) values.push_back(point.x);
    }
    if (panel.kind == ChartKind::kSteps) add_bin_ends(series, values);
  }
  ChartScale scale = scale_of(panel.x, values, panel, true);
  if (panel.kind != ChartKind::kLines || !panel.x.categories.empty()) return scale;
  // What was measured is read best at marks of its own.
  std::vector<ChartTick> ticks = ticks_at(std::move(values), scale);
  if (!ticks.empty()) scale.ticks = std::move(ticks);
  return scale;
}

ChartScale y_scale(const ChartPanel& panel) {
  std::vector<double> values;
  for (const ChartSeries& series : panel.series) {
    for (const ChartPoint& point : series.points) {
      if (!is_drawn(point)) continue;
      for (const double value : {point.y, point.below.value_or(point.y), point.above.value_or(point.y)}) {
        if (std::isfinite(value)) values.push_back(value);
      }
    }
  }
  return scale_of(panel.y, std::move(values), panel, false);
}

}  // namespace settrain
