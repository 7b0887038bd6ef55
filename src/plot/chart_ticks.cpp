#include "src/plot/chart_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plot/pictures.h"
#include "src/plot/text_size.h"

namespace settrain {
namespace {

constexpr size_t kMostNames = 20, kMostMarks = 100, kMostCharacters = 40, kLeastLabels = 3;

// As people write it, without a power of ten from 0.000001 to 9999999. `decimals`: those that tell ticks apart.
std::string tick_label(double value, int decimals) {
  const double size = std::abs(value);
  if (decimals > 6 || size >= 1e7) return fmt::format("{:.6g}", value);
  return fmt::format("{:.{}f}", size < std::pow(10, -decimals) / 2 ? 0.0 : value, std::max(0, decimals));
}

}  // namespace

std::vector<ChartTick> category_ticks(const std::vector<std::string>& names) {
  const size_t step = (names.size() + kMostNames - 1) / kMostNames;
  std::vector<ChartTick> ticks;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i % step == 0) {
      ticks.push_back({static_cast<double>(i), shortened(one_line(names[i]), kMostCharacters)});
    } else if (names.size() <= kMostMarks) {
      ticks.push_back({static_cast<double>(i)});
    }
  }
  return ticks;
}

std::vector<ChartTick> linear_ticks(double least, double most, size_t labels) {
  const double raw = (most - least) / static_cast<double>(labels - 1);
  if (!std::isfinite(raw) || raw <= 0) return {};
  const int power = static_cast<int>(std::floor(std::log10(raw)));
  const double ten = std::pow(10, power);
  double step = 10 * ten;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * ten >= raw * (1 - 1e-9)) step = factor * ten;
  }
  std::vector<ChartTick> ticks;
  const double first = std::ceil(least / step - 1e-9);
  for (size_t i = 0; i < labels; ++i) {
    const double at = (first + static_cast<double>(i)) * step;
    if (at > most + 1e-9 * step) break;
    ticks.push_back({at, tick_label(at, step > 5 * ten ? -power - 1 : -power)});
  }
  return ticks;
}

std::vector<ChartTick> log_ticks(double least, double most, size_t labels) {
  const int first = static_cast<int>(std::floor(std::log10(least)));
  const int last = static_cast<int>(std::ceil(std::log10(most)));
  const int step = std::max(1, (last - first) / static_cast<int>(labels) + 1);
  const auto is_in = [&](double value) { return value >= least * (1 - 1e-9) && value <= most * (1 + 1e-9); };
  for (const std::vector<int>& labelled : {std::vector{1}, {1, 3}, {1, 2, 5}}) {
    std::vector<ChartTick> ticks;
    size_t count = 0;
    for (int power = first; power <= last; ++power) {
      for (int factor = 1; factor < 10; ++factor) {
        const double at = factor * std::pow(10, power);
        const bool has_label =
            std::find(labelled.begin(), labelled.end(), factor) != labelled.end() && power % step == 0;
        if (!is_in(at) || (step > 1 && factor > 1)) continue;
        ticks.push_back({at, has_label ? tick_label(at, -power) : std::string()});
        count += has_label ? 1 : 0;
      }
    }
    if (count >= kLeastLabels) return ticks;
  }
  return linear_ticks(least, most, labels);
}

}  // namespace settrain
