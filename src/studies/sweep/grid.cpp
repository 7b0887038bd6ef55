#include "src/studies/sweep/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "src/config/value.h"
#include "src/core/error.h"
#include "src/core/random.h"

namespace settrain {
namespace {

constexpr size_t kMostPoints = 100'000;

[[noreturn]] void fail(const GridStep& step, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", step.origin.text, what));
}

bool holds(const GridStep& step, const Settings& point) {
  for (const Axis& condition : step.when) {
    const std::string* value = find_setting(point, condition.key);
    if (!value) return false;
    if (std::find(condition.values.begin(), condition.values.end(), *value) == condition.values.end()) return false;
  }
  return true;
}

std::vector<Settings> product(const GridStep& step) {
  std::vector<Settings> points{{}};
  for (const Axis& axis : step.axes) {
    std::vector<Settings> longer;
    for (const Settings& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        set(longer.back(), axis.key, value);
      }
    }
    if (longer.size() > kMostPoints) fail(step, fmt::format("more than {} points", kMostPoints));
    points = std::move(longer);
  }
  return points;
}

std::vector<Settings> zip(const GridStep& step) {
  std::vector<Settings> points(step.axes.empty() ? 0 : step.axes.front().values.size());
  for (size_t i = 0; i < points.size(); ++i) {
    for (const Axis& axis : step.axes) set(points[i], axis.key, axis.values[i]);
  }
  return points;
}

// Four significant digits, which say enough of a number that was drawn.
std::string rounded(double value, const RandomAxis& axis) {
  const double few = std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
  return number_text(std::clamp(few, axis.low, axis.high));
}

std::string draw(const RandomAxis& axis, const std::array<uint32_t, 4>& words) {
  const double u = unit_double(words[0], words[1]);
  switch (axis.kind) {
    case RandomAxis::Kind::kUniform:
      return rounded(axis.low + u * (axis.high - axis.low), axis);
    case RandomAxis::Kind::kLogUniform:
      return rounded(std::exp(std::log(axis.low) + u * (std::log(axis.high) - std::log(axis.low))), axis);
    case RandomAxis::Kind::kInteger:
      return fmt::format("{}", static_cast<int64_t>(std::floor(axis.low + u * (axis.high - axis.low + 1))));
    case RandomAxis::Kind::kChoice:
      break;
  }
  return axis.choices[uniform_below(words[0], static_cast<uint32_t>(axis.choices.size()))];
}

std::vector<Settings> random(const GridStep& step) {
  std::vector<Settings> points(static_cast<size_t>(step.count));
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t k = 0; k < step.random.size(); ++k) {
      const auto words = random_words(static_cast<uint64_t>(step.seed), Stream::kSweep, static_cast<uint32_t>(i),
                                      static_cast<uint32_t>(k));
      set(points[i], step.random[k].key, draw(step.random[k], words));
    }
  }
  return points;
}

// The keys that follow others, for one point.
std::vector<Settings> links(const GridStep& step, const Settings& point, const config::Config& base) {
  Settings linked;
  for (const Link& link : step.links) {
    std::string text;
    if (const std::string* value = find_setting(point, link.times)) {
      text = *value;
    } else if (base.has(link.times)) {
      const config::Entry& entry = base.at(link.times);
      text = config::yaml_value(entry.key, entry.value);
    } else {
      fail(step, fmt::format("link: there is no key {}", link.times));
    }
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') fail(step, fmt::format("link: {} is {}, and no number", link.times, text));
    set(linked, link.key, number_text(value * link.factor));
  }
  return {linked};
}

std::vector<Settings> additions(const GridStep& step, const Settings& point, const config::Config& base) {
  switch (step.kind) {
    case GridStep::Kind::kProduct:
      return product(step);
    case GridStep::Kind::kZip:
      return zip(step);
    case GridStep::Kind::kList:
      return step.list;
    case GridStep::Kind::kRandom:
      return random(step);
    case GridStep::Kind::kLink:
      break;
  }
  return links(step, point, base);
}

}  // namespace

const std::string* find_setting(const Settings& settings, const std::string& key) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& entry) { return entry.first == key; });
  return found == settings.end() ? nullptr : &found->second;
}

void set(Settings& settings, const std::string& key, const std::string& value) {
  for (auto& [known, old] : settings) {
    if (known != key) continue;
    old = value;
    return;
  }
  settings.emplace_back(key, value);
}

std::string number_text(double value) {
  // Twelve digits, so that 0.1 x 3 is 0.3.
  const double near = std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr);
  if (near == std::floor(near) && std::abs(near) < 1e15) return fmt::format("{}", static_cast<int64_t>(near));
  return config::format_real(near);
}

std::vector<std::string> varying_keys(const std::vector<Settings>& points) {
  std::vector<std::string> keys;
  std::map<std::string, std::set<std::string>> values;
  for (const Settings& point : points) {
    for (const auto& [key, value] : point) {
      if (values[key].empty()) keys.push_back(key);
      values[key].insert(value);
    }
  }
  std::erase_if(keys, [&](const std::string& key) {
    const auto has = [&key](const Settings& point) { return find_setting(point, key) != nullptr; };
    return values[key].size() == 1 && std::all_of(points.begin(), points.end(), has);
  });
  return keys;
}

std::vector<Settings> expand(const Grid& grid, const config::Config& base) {
  std::vector<Settings> points{{}};
  for (const GridStep& step : grid.steps) {
    for (const Axis& condition : step.when) {
      const auto has = [&](const Settings& point) { return find_setting(point, condition.key) != nullptr; };
      if (std::none_of(points.begin(), points.end(), has)) {
        fail(step, fmt::format("when: no step before sets {}", condition.key));
      }
    }
    std::vector<Settings> next;
    for (const Settings& point : points) {
      if (!holds(step, point)) {
        next.push_back(point);
        continue;
      }
      for (const Settings& added : additions(step, point, base)) {
        next.push_back(point);
        for (const auto& [key, value] : added) set(next.back(), key, value);
      }
      if (next.size() > kMostPoints) fail(step, fmt::format("more than {} points", kMostPoints));
    }
    points = std::move(next);
  }
  return points;
}

}  // namespace settrain
