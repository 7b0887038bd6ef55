#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/plot/chart_panel.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

constexpr size_t kMostNames = 20, kMostTics = 10, kFewestTics = 3;
constexpr double kMargin = 0.06, kBetweenTics = 0.08;  // of the range: beyond the points, and for a tic's label

ChartRange range_of(const ChartAxis& axis, std::vector<double> values, bool from_zero) {
  // Beside an end that is given only what lies within it counts.
  std::erase_if(values, [&](double value) {
    return !std::isfinite(value) || (axis.is_log && value <= 0) || (axis.least && value < *axis.least) ||
           (axis.most && value > *axis.most);
  });
  if (from_zero) values.push_back(0);
  if (values.empty()) values.push_back(axis.least.value_or(axis.most.value_or(axis.is_log ? 1 : 0)));
  const auto scaled = [&](double value) { return axis.is_log ? std::log10(value) : value; };
  double low = scaled(axis.least.value_or(*std::min_element(values.begin(), values.end())));
  double high = scaled(axis.most.value_or(*std::max_element(values.begin(), values.end())));
  const double margin = low < high ? kMargin * (high - low) : std::max(0.3, 0.1 * std::abs(low));
  if (!axis.least && !(from_zero && low == 0)) low -= margin;
  if (!axis.most) high += margin;
  return axis.is_log ? ChartRange{std::pow(10, low), std::pow(10, high), true} : ChartRange{low, high};
}

// Where points of the panel stand, each place once.
std::vector<double> places_of(const ChartPanel& panel) {
  std::vector<double> places;
  for (const ChartSeries& series : panel.series) {
    for (const ChartPoint& point : series.points) {
      if (is_drawn(point)) places.push_back(point.x);
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Tics at the places of the points, where measured values are read best. None where they are many, or too close for
// their labels.
std::vector<double> tics_at_points(const ChartPanel& panel, const ChartRange& range) {
  const std::vector<double> places = places_of(panel);
  if (panel.kind == ChartKind::kPoints || places.size() > kMostTics) return {};
  for (size_t i = 1; i < places.size(); ++i) {
    if (range.place(places[i]) - range.place(places[i - 1]) < kBetweenTics) return {};
  }
  return places;
}

// None where enough powers of ten lie within the range; else these, 2 and 5 times these, or what a linear axis has.
std::vector<double> logarithmic_tics(const ChartRange& range) {
  for (const std::vector<int>& factors : {std::vector{1}, {1, 2, 5}}) {
    std::vector<double> tics;
    for (double power = std::floor(std::log10(range.least)); power <= std::log10(range.most); ++power) {
      for (const int factor : factors) tics.push_back(factor * std::pow(10, power));
    }
    std::erase_if(tics, [&](double tic) { return range.place(tic) < 0 || range.place(tic) > 1; });
    if (tics.size() >= kFewestTics) return factors.size() == 1 ? std::vector<double>{} : tics;
  }
  const double most = (range.most - range.least) / kFewestTics, ten = std::pow(10, std::floor(std::log10(most)));
  const double step = most >= 5 * ten ? 5 * ten : most >= 2 * ten ? 2 * ten : ten;
  std::vector<double> tics;
  for (double i = std::ceil(range.least / step); i * step <= range.most; ++i) tics.push_back(i * step);
  return tics;
}

std::string axis_commands(char axis, const ChartRange& range, std::vector<double> tics) {
  if (tics.empty() && range.is_log) tics = logarithmic_tics(range);
  return fmt::format("{0} logscale {1}\nset {1}range [{2}:{3}]\nset {1}tics norotate {4}\n",
                     range.is_log ? "set" : "unset", axis, range.least, range.most,
                     tics.empty() ? "autofreq" : fmt::format("({:.10g})", fmt::join(tics, ", ")));
}

}  // namespace

double ChartRange::place(double value) const {
  return is_log ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
}

ChartRange x_range(const ChartPanel& panel) {
  if (!panel.categories.empty()) return {-0.5, static_cast<double>(panel.categories.size()) - 0.5};
  std::vector<double> places = places_of(panel);
  if (panel.kind == ChartKind::kSteps && places.size() > 1) {
    // The outer halves of the first and last bin.
    const double last = places.back(), before = places[places.size() - 2];
    places.push_back(places[0] - (places[1] - places[0]) / 2);
    places.push_back(last + (last - before) / 2);
  }
  return range_of(panel.x, std::move(places), false);
}

ChartRange y_range(const ChartPanel& panel) {
  std::vector<double> values;
  for (const ChartSeries& series : panel.series) {
    for (const ChartPoint& point : series.points) {
      if (!is_drawn(point)) continue;
      values.insert(values.end(), {point.y, point.below.value_or(point.y), point.above.value_or(point.y)});
    }
  }
  return range_of(panel.y, std::move(values), panel.kind == ChartKind::kSteps && !panel.y.is_log);
}

std::string axes_commands(const ChartPanel& panel) {
  const ChartRange x = x_range(panel);
  std::string commands = axis_commands('y', y_range(panel), {});
  if (panel.categories.empty()) return commands + axis_commands('x', x, tics_at_points(panel, x));
  std::vector<std::string> tics;
  for (size_t i = 0; i < panel.categories.size(); i += 1 + panel.categories.size() / (kMostNames + 1)) {
    tics.push_back(fmt::format("{} {}", tic_string(panel.categories[i]), i));
  }
  return commands + axis_commands('x', x, {}) +
         fmt::format("set xtics rotate by 40 right ({})\n", fmt::join(tics, ", "));
}

}  // namespace settrain
