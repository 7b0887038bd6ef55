#include "src/studies/sweep/tree_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/config/value.h"
#include "src/core/error.h"

namespace settrain {

using Kind = config::YamlNode::Kind;

std::string TreeReader::text(const YamlNode& node) {
  if (node.is(Kind::kScalar) && !node.text.empty()) return node.text;
  problem(node, "expected a text");
  return "";
}

std::vector<std::string> TreeReader::texts(const YamlNode& node) {
  if (!node.is(Kind::kList)) return {text(node)};
  std::vector<std::string> all;
  for (const YamlNode& element : node.values) all.push_back(text(element));
  return all;
}

std::string TreeReader::value(const YamlNode& node) {
  if (node.is(Kind::kScalar)) return node.quoted ? config::yaml_text(node.text) : node.text;
  std::vector<std::string> elements;
  if (node.is(Kind::kMap) && !node.keys.empty()) {
    each(node, {"from", "to", "curve"}, [&](const std::string& name, const YamlNode& part) {
      elements.push_back(fmt::format("{}: {}", name, value(part)));
    });
    return "{" + join(elements, ", ") + "}";
  }
  if (!node.is(Kind::kList)) {
    problem(node, "expected a value, a list of them, or {from, to, curve}");
    return "";
  }
  for (const YamlNode& element : node.values) elements.push_back(value(element));
  return "[" + join(elements, ", ") + "]";
}

std::optional<double> TreeReader::number(const YamlNode& node) {
  if (node.is(Kind::kScalar) && !node.quoted && !node.text.empty()) {
    char* end = nullptr;
    const double number = std::strtod(node.text.c_str(), &end);
    if (*end == '\0' && std::isfinite(number)) return number;
  }
  problem(node, "expected a number");
  return std::nullopt;
}

std::vector<double> TreeReader::numbers(const YamlNode& node, size_t count) {
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

int64_t TreeReader::integer(const YamlNode& node, int64_t least, int64_t most) {
  const auto found = number(node);
  if (!found) return least;
  if (*found == std::floor(*found) && *found >= static_cast<double>(least) && *found <= static_cast<double>(most)) {
    return static_cast<int64_t>(*found);
  }
  problem(node, fmt::format("expected a whole number from {} to {}", least, most));
  return least;
}

std::vector<std::string> TreeReader::values(const YamlNode& node) {
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

void TreeReader::refuse_reserved(const std::string& key, const YamlNode& at) {
  if (key == "seed") problem(at, "seed: the sweep's seeds are the list `seeds`");
  if (key == "run.threads") problem(at, "run.threads: the option --threads says it, at the sweep's first start");
  if (key == "select")
    problem(
        at,
        "select: the metric that chooses is the key `select` of the sweep, of a table's parts, or of a figure's panels");
  if (key == "name" || key == "run.dir") problem(at, key + ": the sweep names its runs");
}

Settings TreeReader::settings(const YamlNode& node) {
  Settings all;
  each(node, {}, [&](const std::string& key, const YamlNode& given) {
    refuse_reserved(key, given);
    all.emplace_back(key, value(given));
  });
  return all;
}

const TreeReader::YamlNode* TreeReader::find_preset(const YamlNode& root, const std::string& name) {
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
    problem(root, fmt::format("there is no preset {}; the file has: {}", in_quotes(name),
                              names.empty() ? "none" : join(names, ", ")));
  }
  return found;
}

std::string read_yaml_text(const std::filesystem::path& file, const std::string& what) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError(fmt::format("'{}' is a folder, and no {}", file.string(), what));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw ConfigError(fmt::format("'{}' cannot be read: {}", file.string(), std::strerror(errno)));
  constexpr size_t kLargest = 1024 * 1024;
  std::string text(kLargest + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kLargest)
    throw ConfigError(fmt::format("'{}' is larger than 1 MiB, and no {}", file.string(), what));
  return text;
}

}  // namespace settrain
