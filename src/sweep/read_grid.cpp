#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "src/config/format.h"
#include "src/config/problems.h"
#include "src/config/text.h"
#include "src/config/yaml.h"
#include "src/core/suggest.h"
#include "src/sweep/grid.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;

constexpr int64_t kMostValues = 10'000;  // of a range, of random points

// Walks the tree of a grid file; what is wrong is gathered, and the walk goes on.
class GridReader {
 public:
  explicit GridReader(config::Problems& problems) : problems_(problems) {}

  void read(const YamlNode& root, const std::filesystem::path& folder, Grid& grid) {
    each(root, {"base", "set", "seeds", "points", "select", "report", "per", "presets"},
         [&](const std::string& key, const YamlNode& value) {
           if (key == "base") grid.base = folder / text(value);
           if (key == "set") {
             for (const auto& [name, setting] : settings(value)) settrain::set(grid.common, name, setting);
           }
           if (key == "seeds") grid.seeds = values(value);
           if (key == "points") grid.steps = steps(value);
           if (key == "select") grid.select = text(value);
           if (key == "report") grid.report = texts(value);
           if (key == "per") grid.per = texts(value);
         });
  }

  // The part of `presets` that is asked for.
  const YamlNode* find_preset(const YamlNode& root, const std::string& name) {
    std::vector<std::string> names;
    const YamlNode* found = nullptr;
    for (size_t i = 0; root.is(Kind::kMap) && i < root.keys.size(); ++i) {
      if (root.keys[i].text != "presets" || !root.values[i].is(Kind::kMap)) continue;
      for (size_t k = 0; k < root.values[i].keys.size(); ++k) {
        names.push_back(root.values[i].keys[k].text);
        if (names.back() == name) found = &root.values[i].values[k];
      }
    }
    if (!found) {
      problem(root, fmt::format("there is no preset {}; there are: {}", config::in_quotes(name),
                                names.empty() ? "none" : config::join(names, ", ")));
    }
    return found;
  }

 private:
  void problem(const YamlNode& at, const std::string& what) { problems_.add(at.origin, "", what); }

  // Visits the entries of a map whose keys are among `known`; an empty list: any.
  template <class Visit>
  void each(const YamlNode& map, const std::vector<std::string>& known, const Visit& visit) {
    if (!map.is(Kind::kMap)) return problem(map, "expected a map of keys and values");
    std::vector<std::string> seen;
    for (size_t i = 0; i < map.keys.size(); ++i) {
      const std::string& key = map.keys[i].text;
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        problem(map.keys[i], fmt::format("{} comes twice", config::in_quotes(key)));
      } else if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end()) {
        problem(map.keys[i], fmt::format("unknown key {}{}", config::in_quotes(key),
                                         config::did_you_mean(nearest_name(key, known))));
      } else {
        visit(key, map.values[i]);
      }
      seen.push_back(key);
    }
  }

  std::string text(const YamlNode& node) {
    if (node.is(Kind::kScalar) && !node.text.empty()) return node.text;
    problem(node, "expected a text");
    return "";
  }

  std::vector<std::string> texts(const YamlNode& node) {
    if (!node.is(Kind::kList)) return {text(node)};
    std::vector<std::string> all;
    for (const YamlNode& element : node.values) all.push_back(text(element));
    return all;
  }

  // A value of a config key, as YAML.
  std::string value(const YamlNode& node) {
    if (node.is(Kind::kScalar)) return node.quoted ? config::yaml_text(node.text) : node.text;
    if (!node.is(Kind::kList)) {
      problem(node, "expected a value, or a list of them");
      return "";
    }
    std::vector<std::string> elements;
    for (const YamlNode& element : node.values) elements.push_back(value(element));
    return "[" + config::join(elements, ", ") + "]";
  }

  std::optional<double> number(const YamlNode& node) {
    if (node.is(Kind::kScalar) && !node.quoted && !node.text.empty()) {
      char* end = nullptr;
      const double number = std::strtod(node.text.c_str(), &end);
      if (*end == '\0' && std::isfinite(number)) return number;
    }
    problem(node, "expected a number");
    return std::nullopt;
  }

  std::vector<double> numbers(const YamlNode& node, size_t count) {
    std::vector<double> all;
    if (node.is(Kind::kList) && node.values.size() == count) {
      for (const YamlNode& element : node.values) {
        if (const auto found = number(element)) all.push_back(*found);
      }
    } else {
      problem(node, fmt::format("expected a list of {} numbers", count));
    }
    return all.size() == count ? all : std::vector<double>{};
  }

  int64_t integer(const YamlNode& node, int64_t least, int64_t most) {
    const auto found = number(node);
    if (!found) return least;
    if (*found == std::floor(*found) && *found >= static_cast<double>(least) && *found <= static_cast<double>(most)) {
      return static_cast<int64_t>(*found);
    }
    problem(node, fmt::format("expected a whole number from {} to {}", least, most));
    return least;
  }

  // The values of an axis: a list, or {range: [first, last, count]}, or {log_range: ...}.
  std::vector<std::string> values(const YamlNode& node) {
    std::vector<std::string> all;
    if (node.is(Kind::kList)) {
      for (const YamlNode& element : node.values) all.push_back(value(element));
      if (all.empty()) problem(node, "is empty");
      return all;
    }
    if (!node.is(Kind::kMap)) {
      problem(node, "expected a list of values, or {range: [first, last, count]} or {log_range: [first, last, count]}");
      return all;
    }
    if (node.keys.size() != 1) problem(node, "expected one of range and log_range");
    each(node, {"range", "log_range"}, [&](const std::string& key, const YamlNode& ends) {
      const auto found = numbers(ends, 3);
      if (found.empty()) return;
      const bool is_log = key == "log_range";
      const int64_t count = integer(ends.values[2], 2, kMostValues);
      if (is_log && (found[0] <= 0 || found[1] <= 0)) return problem(ends, "a log_range lies above zero");
      for (int64_t i = 0; i < count; ++i) {
        const double t = static_cast<double>(i) / static_cast<double>(count - 1);
        const double x = is_log ? found[0] * std::pow(found[1] / found[0], t) : found[0] + t * (found[1] - found[0]);
        // Six digits, so that names of runs stay readable.
        all.push_back(number_text(std::strtod(fmt::format("{:.6g}", x).c_str(), nullptr)));
      }
    });
    return all;
  }

  // Keys that the sweep itself decides.
  void refuse_reserved(const std::string& key, const YamlNode& at) {
    if (key == "seed") problem(at, "seed: the sweep's seeds are the list `seeds`");
    if (key == "run.threads") problem(at, "run.threads: the option --threads says it, at the sweep's first start");
    if (key == "select") problem(at, "select: the metric that chooses is the sweep's own key `select`");
    if (key == "name" || key == "run.dir") problem(at, key + ": the sweep names its runs");
  }

  Settings settings(const YamlNode& node) {
    Settings all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      refuse_reserved(key, given);
      all.emplace_back(key, value(given));
    });
    return all;
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

  std::vector<RandomAxis> random_axes(const YamlNode& node) {
    std::vector<RandomAxis> all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      refuse_reserved(key, given);
      if (given.keys.size() != 1) problem(given, "expected one of uniform, log_uniform, integer and choice");
      each(given, {"uniform", "log_uniform", "integer", "choice"}, [&](const std::string& kind, const YamlNode& ends) {
        RandomAxis axis{.key = key};
        if (kind == "choice") {
          axis.kind = RandomAxis::Kind::kChoice;
          axis.choices = values(ends);
        } else {
          axis.kind = kind == "uniform"       ? RandomAxis::Kind::kUniform
                      : kind == "log_uniform" ? RandomAxis::Kind::kLogUniform
                                              : RandomAxis::Kind::kInteger;
          const auto found = numbers(ends, 2);
          if (found.empty()) return;
          axis.low = found[0];
          axis.high = found[1];
          if (axis.high < axis.low) problem(ends, "the second number is below the first");
          if (kind == "integer" && (axis.low != std::floor(axis.low) || axis.high != std::floor(axis.high))) {
            problem(ends, "expected two whole numbers");
          }
          if (kind == "log_uniform" && axis.low <= 0) problem(ends, "a log_uniform lies above zero");
        }
        all.push_back(std::move(axis));
      });
    });
    return all;
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
           if (key == "when") {
             step.when = conditions(given);
             return;
           }
           ++kinds;
           fill(step, key, given);
         });
    if (kinds != 1) problem(node, "expected one of product, zip, list, random and link");
    return step;
  }

  void fill(GridStep& step, const std::string& kind, const YamlNode& given) {
    if (kind == "product" || kind == "zip") {
      step.kind = kind == "zip" ? GridStep::Kind::kZip : GridStep::Kind::kProduct;
      step.axes = axes(given);
      for (const Axis& axis : step.axes) {
        if (kind == "zip" && axis.values.size() != step.axes.front().values.size()) {
          problem(given, fmt::format("{} has {} values, {} has {}: in a zip all have as many", axis.key,
                                     axis.values.size(), step.axes.front().key, step.axes.front().values.size()));
        }
      }
    } else if (kind == "list") {
      step.kind = GridStep::Kind::kList;
      if (!given.is(Kind::kList) || given.values.empty()) problem(given, "expected a list of maps");
      for (const YamlNode& element : given.values) step.list.push_back(settings(element));
    } else if (kind == "random") {
      step.kind = GridStep::Kind::kRandom;
      each(given, {"count", "seed", "keys"}, [&](const std::string& key, const YamlNode& said) {
        if (key == "count") step.count = integer(said, 1, kMostValues);
        if (key == "seed") step.seed = integer(said, 0, int64_t{1} << 53);
        if (key == "keys") step.random = random_axes(said);
      });
      if (step.count == 0 || step.random.empty()) problem(given, "expected {count: N, seed: N, keys: {KEY: ...}}");
    } else {
      step.kind = GridStep::Kind::kLink;
      step.links = links(given);
    }
  }

  config::Problems& problems_;
};

bool is_set_by(const Grid& grid, const std::string& key) {
  const auto is_key = [&key](const auto& of) { return of.key == key; };
  return std::any_of(grid.steps.begin(), grid.steps.end(), [&](const GridStep& step) {
    const auto sets = [&key](const Settings& settings) { return find_setting(settings, key) != nullptr; };
    return std::any_of(step.axes.begin(), step.axes.end(), is_key) ||
           std::any_of(step.list.begin(), step.list.end(), sets) ||
           std::any_of(step.random.begin(), step.random.end(), is_key) ||
           std::any_of(step.links.begin(), step.links.end(), is_key);
  });
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError(fmt::format("'{}' is a folder, and no sweep", file.string()));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw ConfigError(fmt::format("'{}' cannot be read: {}", file.string(), std::strerror(errno)));
  constexpr size_t kLargest = 1024 * 1024;
  std::string text(kLargest + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kLargest) throw ConfigError(fmt::format("'{}' is larger than 1 MiB, and no sweep", file.string()));
  return text;
}

}  // namespace

Grid read_grid(const std::filesystem::path& file, const std::string& preset) {
  config::Problems problems;
  const auto root = config::parse_yaml(read_text(file), {file.string(), 0, true}, problems);
  problems.throw_if_any();
  GridReader reader(problems);
  Grid grid;
  reader.read(*root, file.parent_path(), grid);
  const YamlNode* over = preset.empty() ? nullptr : reader.find_preset(*root, preset);
  if (over) reader.read(*over, file.parent_path(), grid);
  if (grid.base.empty())
    problems.add(root->origin, "", "expected the key base: the config that every point starts from");
  if (grid.steps.empty()) problems.add(root->origin, "", "expected the key points: a list of steps");
  for (const std::string& key : grid.per) {
    if (!is_set_by(grid, key))
      problems.add(root->origin, "", fmt::format("per: no step sets {}", config::in_quotes(key)));
  }
  for (const std::string& metric : grid.report) {
    if (metric.find('/') != std::string::npos) continue;
    problems.add(root->origin, "",
                 fmt::format("report: {} has no split, such as test/top5", config::in_quotes(metric)));
  }
  if (!grid.select.starts_with("val/")) {
    problems.add(root->origin, "", "expected the key select: the validation metric that chooses, such as val/top5");
  }
  problems.throw_if_any();
  return grid;
}

}  // namespace settrain
