#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/config/problems.h"
#include "src/config/yaml.h"
#include "src/core/text.h"
#include "src/studies/sweep/grid.h"
#include "src/studies/sweep/tree_reader.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;

// Walks the tree of a grid file; what is wrong is gathered, and the walk goes on.
class GridReader : public TreeReader {
 public:
  using TreeReader::TreeReader;

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

 private:
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
};

bool is_set_by(const Grid& grid, const std::string& key) {
  const auto is_key = [&key](const auto& setter) { return setter.key == key; };
  return std::any_of(grid.steps.begin(), grid.steps.end(), [&](const GridStep& step) {
    const auto sets = [&key](const Settings& settings) { return find_setting(settings, key) != nullptr; };
    return std::any_of(step.axes.begin(), step.axes.end(), is_key) ||
           std::any_of(step.list.begin(), step.list.end(), sets) ||
           std::any_of(step.random.begin(), step.random.end(), is_key) ||
           std::any_of(step.links.begin(), step.links.end(), is_key);
  });
}

}  // namespace

Grid read_grid(const std::filesystem::path& file, const std::string& preset) {
  config::Problems problems;
  const auto root = config::parse_yaml(read_yaml_text(file, "sweep"), {file.string(), 0, true}, problems);
  problems.throw_if_any();
  GridReader reader(problems);
  Grid grid;
  reader.read(*root, file.parent_path(), grid);
  const YamlNode* preset_node = preset.empty() ? nullptr : reader.find_preset(*root, preset);
  if (preset_node) reader.read(*preset_node, file.parent_path(), grid);
  if (grid.base.empty())
    problems.add(root->origin, "", "expected the key base: the config that every point starts from");
  if (grid.steps.empty()) problems.add(root->origin, "", "expected the key points: a list of steps");
  for (const std::string& key : grid.per) {
    if (!is_set_by(grid, key)) problems.add(root->origin, "", fmt::format("per: no step sets {}", in_quotes(key)));
  }
  for (const std::string& metric : grid.report) {
    if (metric.find('/') != std::string::npos) continue;
    problems.add(root->origin, "", fmt::format("report: {} has no split, such as test/top5", in_quotes(metric)));
  }
  if (!grid.select.starts_with("val/")) {
    problems.add(root->origin, "", "expected the key select: the validation metric that chooses, such as val/top5");
  }
  problems.throw_if_any();
  return grid;
}

}  // namespace settrain
