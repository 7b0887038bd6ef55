#include "src/studies/sweep/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "src/config/problems.h"
#include "src/config/value.h"
#include "src/config/yaml.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/text.h"
#include "src/studies/sweep/tree_reader.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;

// Every combination, the last key fastest; no more of them than it takes to exceed kMostPoints.
std::vector<Settings> product(const std::vector<Axis>& axes) {
  std::vector<Settings> points{{}};
  for (const Axis& axis : axes) {
    std::vector<Settings> longer;
    for (const Settings& point : points) {
      if (longer.size() > kMostPoints) break;
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        set(longer.back(), axis.key, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

enum class Distribution { kUniform, kLogUniform, kInteger, kChoice };

const config::Named<Distribution> kDistributions{{"uniform", Distribution::kUniform},
                                                 {"log_uniform", Distribution::kLogUniform},
                                                 {"integer", Distribution::kInteger},
                                                 {"choice", Distribution::kChoice}};

// A key whose values are drawn.
struct RandomAxis {
  std::string key;
  Distribution kind;
  double low = 0, high = 0;            // kInteger: [low, high], else [low, high)
  std::vector<std::string> choices{};  // of kChoice
};

std::string draw(const RandomAxis& axis, const std::array<uint32_t, 4>& words) {
  if (axis.kind == Distribution::kChoice) {
    if (axis.choices.empty()) return "";  // a problem of the file, reported already
    return axis.choices[uniform_below(words[0], static_cast<uint32_t>(axis.choices.size()))];
  }
  const double u = unit_double(words[0], words[1]);
  if (axis.kind == Distribution::kInteger) {
    return fmt::format("{}", static_cast<int64_t>(std::floor(axis.low + u * (axis.high - axis.low + 1))));
  }
  const double value = axis.kind == Distribution::kUniform
                           ? axis.low + u * (axis.high - axis.low)
                           : std::exp(std::log(axis.low) + u * (std::log(axis.high) - std::log(axis.low)));
  // Four significant digits, which say enough of a number that was drawn.
  const double rounded = std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
  return number_text(std::max(axis.low, std::min(rounded, axis.high)));
}

std::vector<Settings> random_points(const std::vector<RandomAxis>& axes, int64_t count, int64_t seed) {
  std::vector<Settings> points(static_cast<size_t>(count));
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto words =
          random_words(static_cast<uint64_t>(seed), Stream::kSweep, static_cast<uint32_t>(i), static_cast<uint32_t>(k));
      set(points[i], axes[k].key, draw(axes[k], words));
    }
  }
  return points;
}

// Walks the tree of a grid file; what is wrong is gathered, and the walk goes on.
class GridReader : public TreeReader {
 public:
  using TreeReader::TreeReader;

  void read(const YamlNode& root, const std::filesystem::path& folder, Grid& grid) {
    std::vector<GridStep> more;
    each(root, {"base", "set", "seeds", "points", "then", "select", "report", "per", "presets"},
         [&](const std::string& key, const YamlNode& value) {
           if (key == "base") grid.base = base(value, folder);
           if (key == "set") {
             for (const auto& [name, setting] : settings(value)) settrain::set(grid.common, name, setting);
           }
           if (key == "seeds") grid.seeds = values(value);
           if (key == "points") grid.steps = steps(value);
           if (key == "then") more = steps(value);
           if (key == "select") {
             grid.select = text(value);
             select_ = &value;
           }
           if (key == "report") grid.report = texts(value);
           if (key == "per") grid.per = texts(value);
         });
    for (GridStep& step : more) grid.steps.push_back(std::move(step));
  }

  // Where the metric that chooses was read; null where it was not.
  const YamlNode* select() const { return select_; }

 private:
  std::filesystem::path base(const YamlNode& node, const std::filesystem::path& folder) {
    const std::string name = text(node);
    std::error_code error;
    if (const std::string hint = shell_hint(name); !hint.empty() && !std::filesystem::exists(folder / name, error)) {
      problem(node, fmt::format("there is no file {}{}", in_quotes(name), hint));
    }
    return folder / name;
  }

  std::vector<Axis> axes(const YamlNode& node) {
    std::vector<Axis> all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      refuse_reserved(key, given);
      all.push_back({key, values(given)});
    });
    return all;
  }

  std::vector<Axis> conditions(const YamlNode& node) {
    std::vector<Axis> all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      all.push_back({key, given.is(Kind::kList) ? values(given) : std::vector<std::string>{value(given)}});
    });
    return all;
  }

  std::vector<Settings> zip(const YamlNode& node) {
    const std::vector<Axis> all = axes(node);
    std::vector<Settings> points(all.empty() ? 0 : all.front().values.size());
    for (const Axis& axis : all) {
      if (axis.values.size() != points.size()) {
        problem(node, fmt::format("{} has {} values, {} has {}: in a zip all have as many", axis.key,
                                  axis.values.size(), all.front().key, points.size()));
      }
      for (size_t i = 0; i < std::min(points.size(), axis.values.size()); ++i) set(points[i], axis.key, axis.values[i]);
    }
    return points;
  }

  std::vector<RandomAxis> random_axes(const YamlNode& node) {
    std::vector<RandomAxis> all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      refuse_reserved(key, given);
      if (given.keys.size() != 1) problem(given, "expected one of uniform, log_uniform, integer and choice");
      each(given, {"uniform", "log_uniform", "integer", "choice"}, [&](const std::string& kind, const YamlNode& ends) {
        RandomAxis axis{.key = key, .kind = config::value_named(kDistributions, kind)};
        if (axis.kind == Distribution::kChoice) {
          axis.choices = values(ends);
        } else {
          const auto found = numbers(ends, 2);
          if (found.empty()) return;
          axis.low = found[0];
          axis.high = found[1];
          if (axis.high < axis.low) problem(ends, "the second number is below the first");
          if (axis.kind == Distribution::kInteger &&
              (axis.low != std::floor(axis.low) || axis.high != std::floor(axis.high) || std::abs(axis.low) > 0x1p53 ||
               std::abs(axis.high) > 0x1p53)) {
            problem(ends, "expected two whole numbers, of up to 2^53");
          }
          if (axis.kind == Distribution::kLogUniform && axis.low <= 0) problem(ends, "a log_uniform lies above zero");
        }
        all.push_back(std::move(axis));
      });
    });
    return all;
  }

  std::vector<Settings> random(const YamlNode& node) {
    int64_t count = 0, seed = 0;
    std::vector<RandomAxis> axes;
    each(node, {"count", "seed", "keys"}, [&](const std::string& key, const YamlNode& given) {
      if (key == "count") count = integer(given, 1, kMostValues);
      if (key == "seed") seed = integer(given, 0, int64_t{1} << 53);
      if (key == "keys") axes = random_axes(given);
    });
    if (count == 0 || axes.empty()) problem(node, "expected {count: N, seed: N, keys: {KEY: ...}}");
    return random_points(axes, count, seed);
  }

  std::vector<Link> links(const YamlNode& node) {
    std::vector<Link> all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      refuse_reserved(key, given);
      Link link{.key = key, .times = {}};
      each(given, {"times", "by"}, [&](const std::string& name, const YamlNode& said) {
        if (name == "times") link.times = text(said);
        if (name == "by") link.factor = number(said).value_or(1);
      });
      if (link.times.empty()) problem(given, "expected {times: KEY, by: NUMBER}");
      for (const Link& before : all) {
        if (before.times == key)
          problem(given, fmt::format("{} is set after {}, which follows it: write it before", key, before.key));
      }
      all.push_back(std::move(link));
    });
    return all;
  }

  std::vector<GridStep> steps(const YamlNode& node) {
    std::vector<GridStep> all;
    if (!node.is(Kind::kList)) problem(node, "expected a list of steps: product, zip, list, random or link");
    for (const YamlNode& element : node.values) all.push_back(step(element));
    return all;
  }

  GridStep step(const YamlNode& node) {
    GridStep step{.origin = node.origin};
    int kinds = 0;
    each(node, {"when", "product", "zip", "list", "random", "link"},
         [&](const std::string& key, const YamlNode& given) {
           kinds += key != "when";
           if (key == "when") step.when = conditions(given);
           if (key == "product") step.list = product(axes(given));
           if (key == "zip") step.list = zip(given);
           if (key == "list") {
             if (!given.is(Kind::kList) || given.values.empty()) problem(given, "expected a list of maps");
             for (const YamlNode& element : given.values) step.list.push_back(settings(element));
           }
           if (key == "random") step.list = random(given);
           if (key == "link") {
             step.list = {{}};
             step.links = links(given);
           }
         });
    if (kinds != 1) problem(node, "expected one of product, zip, list, random and link");
    return step;
  }

  const YamlNode* select_ = nullptr;
};

[[noreturn]] void fail(const GridStep& step, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", step.origin.text, what));
}

// 0.1, 0.10 and 1e-1 are one value.
bool is_same_value(const std::string& text, const std::string& other) {
  const std::optional<double> number = parse_number<double>(text);
  return text == other || (number && number == parse_number<double>(other));
}

bool holds(const Axis& condition, const Settings& point) {
  const std::string* value = find_setting(point, condition.key);
  const auto is_given = [value](const std::string& wanted) { return is_same_value(*value, wanted); };
  return value && std::ranges::any_of(condition.values, is_given);
}

bool holds(const GridStep& step, const Settings& point) {
  return std::ranges::all_of(step.when, [&point](const Axis& condition) { return holds(condition, point); });
}

// A condition that no point meets may be a typing error.
void check_conditions(const GridStep& step, const std::vector<Settings>& points) {
  for (const Axis& condition : step.when) {
    const auto has = [&](const Settings& point) { return find_setting(point, condition.key) != nullptr; };
    if (std::ranges::none_of(points, has)) fail(step, fmt::format("when: no step before sets {}", condition.key));
  }
  const auto is_met = [&step](const Settings& point) { return holds(step, point); };
  if (std::ranges::any_of(points, is_met)) return;
  std::vector<std::string> texts;
  for (const Axis& condition : step.when)
    texts.push_back(fmt::format("{}: {}", condition.key, fmt::join(condition.values, " or ")));
  log::warning(fmt::format("[sweep] {}: when: no point has {}, and the step is left out", step.origin.text,
                           join(texts, " with ")));
}

// The value of a key that follows another one, for one point.
std::string linked_value(const GridStep& step, const Link& link, const Settings& point, const config::Config& base) {
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
  return number_text(value * link.factor);
}

bool is_set_by(const Grid& grid, const std::string& key) {
  return std::any_of(grid.steps.begin(), grid.steps.end(), [&](const GridStep& step) {
    const auto sets = [&key](const Settings& settings) { return find_setting(settings, key) != nullptr; };
    const auto is_linked = [&key](const Link& link) { return link.key == key; };
    return std::any_of(step.list.begin(), step.list.end(), sets) ||
           std::any_of(step.links.begin(), step.links.end(), is_linked);
  });
}

}  // namespace

const std::string* find_setting(const Settings& settings, const std::string& key) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& entry) { return entry.first == key; });
  return found == settings.end() ? nullptr : &found->second;
}

void set(Settings& settings, const std::string& key, const std::string& value) {
  const auto known =
      std::find_if(settings.begin(), settings.end(), [&](const auto& entry) { return entry.first == key; });
  if (known == settings.end()) {
    settings.emplace_back(key, value);
  } else {
    known->second = value;
  }
}

std::vector<std::string> overrides_of(const Settings& settings) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : settings) overrides.push_back(fmt::format("{}={}", key, value));
  return overrides;
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

Grid read_grid(const std::filesystem::path& file, const std::string& preset) {
  config::Problems problems;
  const auto root = config::parse_yaml(read_yaml_text(file, "sweep"), {file.string(), 0, true}, problems);
  problems.throw_if_any();
  GridReader reader(problems);
  Grid grid;
  reader.read(*root, file.parent_path(), grid);
  const YamlNode* preset_node = preset.empty() ? nullptr : reader.find_preset(*root, preset);
  if (preset_node) reader.read(*preset_node, file.parent_path(), grid);
  if (grid.base.empty()) reader.problem(*root, "expected the key base: the config that every point starts from");
  if (grid.steps.empty()) reader.problem(*root, "expected the key points: a list of steps");
  for (const std::string& key : grid.per) {
    if (!is_set_by(grid, key)) reader.problem(*root, fmt::format("per: no step sets {}", in_quotes(key)));
  }
  for (const std::string& metric : grid.report) {
    if (metric.find('/') != std::string::npos) continue;
    reader.problem(*root, fmt::format("report: {} has no split, such as test/top5", in_quotes(metric)));
  }
  if (!grid.select.starts_with("val/")) {
    const char* advice = "the validation metric that chooses, such as val/top5";
    if (const YamlNode* select = reader.select()) {
      if (!grid.select.empty())
        reader.problem(*select, fmt::format("select: {} is not {}", in_quotes(grid.select), advice));
    } else {
      reader.problem(*root, fmt::format("expected the key select: {}", advice));
    }
  }
  problems.throw_if_any();
  return grid;
}

std::vector<Settings> expand_grid(const Grid& grid, const config::Config& base) {
  std::vector<Settings> points{{}};
  for (const GridStep& step : grid.steps) {
    check_conditions(step, points);
    std::vector<Settings> next;
    for (const Settings& point : points) {
      if (!holds(step, point)) {
        next.push_back(point);
        continue;
      }
      for (const Settings& added : step.list) {
        next.push_back(point);
        for (const auto& [key, value] : added) set(next.back(), key, value);
        for (const Link& link : step.links) set(next.back(), link.key, linked_value(step, link, next.back(), base));
      }
      if (next.size() > kMostPoints) fail(step, fmt::format("more than {} points", kMostPoints));
    }
    points = std::move(next);
  }
  return points;
}

}  // namespace settrain
