#include "src/eval/results_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/core/metric_name.h"

namespace settrain {
namespace {

constexpr const char* kShotGroups[] = {"few_", "medium_", "many_"};

std::optional<double> find(const ResultsColumn& column, const std::string& name) {
  for (const MetricValue& value : column.values) {
    if (value.name == name && !std::isnan(value.value)) return value.value;
  }
  return std::nullopt;
}

bool is_known(std::span<const ResultsColumn> columns, const std::string& name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const auto& column) { return find(column, name).has_value(); });
}

bool has_row(std::span<const ResultsColumn> columns, const std::string& name) {
  if (is_size(name) || name.ends_with("_lambda") || !is_known(columns, name)) return false;
  for (const std::string group : kShotGroups) {
    if (!name.starts_with(group)) continue;
    const std::string sets = name.substr(group.size());
    return std::count_if(std::begin(kShotGroups), std::end(kShotGroups),
                         [&](const char* other) { return is_known(columns, other + sets); }) > 1;
  }
  return true;
}

std::vector<std::string> row_names(std::span<const ResultsColumn> columns) {
  std::vector<std::string> names;
  for (const ResultsColumn& column : columns) {
    for (const MetricValue& value : column.values) {
      const bool is_new = std::find(names.begin(), names.end(), value.name) == names.end();
      if (is_new && has_row(columns, value.name)) names.push_back(value.name);
    }
  }
  return names;
}

std::string cell(const ResultsColumn& column, const std::string& name) {
  const std::optional<double> value = find(column, name);
  if (!value) return fmt::format("{:>6}", "-");
  const bool is_coverage = name.starts_with("coverage@");
  const std::optional<double> size = find(column, is_coverage ? size_metric(name) : name + "_size");
  return fmt::format("{:6.2f}", 100 * *value) + (size ? fmt::format(" (size {:.2f})", *size) : "");
}

}  // namespace

std::string format_results(std::span<const ResultsColumn> columns) {
  std::vector<std::vector<std::string>> table{{"accuracy, %"}};
  for (const ResultsColumn& column : columns) table[0].push_back(fmt::format("{:>6}", column.title));
  for (const std::string& name : row_names(columns)) {
    table.push_back({name});
    for (const ResultsColumn& column : columns) table.back().push_back(cell(column, name));
  }

  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      size_t width = 0;
      for (const auto& other : table) width = std::max(width, other[c].size());
      line += fmt::format("{:<{}}  ", row[c], width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string format_set_sizes(const SetSizeHistogram& histogram) {
  constexpr int64_t kMaxLines = 12, kBarWidth = 40;
  const auto& counts = histogram.counts;
  const auto is_used = [](int64_t count) { return count > 0; };
  const int64_t smallest = std::find_if(counts.begin(), counts.end(), is_used) - counts.begin();
  const int64_t largest = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), is_used) - 1;
  const int64_t per_line = (largest - smallest + kMaxLines) / kMaxLines;

  std::vector<int64_t> images;
  for (int64_t first = smallest; first <= largest; first += per_line) {
    images.push_back(0);
    for (int64_t size = first; size < std::min(first + per_line, largest + 1); ++size) images.back() += counts[size];
  }
  const int64_t most = images.empty() ? 1 : *std::max_element(images.begin(), images.end());

  std::string text = histogram.metric + ": images by the number of classes in their set\n";
  for (size_t line = 0; line < images.size(); ++line) {
    const int64_t first = smallest + static_cast<int64_t>(line) * per_line;
    const int64_t last = std::min(first + per_line - 1, largest);
    const std::string sizes = first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    // Rounded up: a size that occurs at all, however rarely, has a bar.
    const int64_t bar = (images[line] * kBarWidth + most - 1) / most;
    text += fmt::format("{:>9} {:>9}{}{:#<{}}\n", sizes, images[line], bar > 0 ? " " : "", "", bar);
  }
  return text;
}

}  // namespace settrain
