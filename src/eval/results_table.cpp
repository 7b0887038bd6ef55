#include "src/eval/results_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace settrain {
namespace {

constexpr const char* kShotGroups[] = {"few_", "medium_", "many_"};

/// The value of that name, or null where the column has none, or NaN.
const MetricValue* find(const ResultsColumn& column, const std::string& name) {
  const auto found = std::ranges::find(column.values, name, &MetricValue::name);
  return found == column.values.end() || std::isnan(found->value) ? nullptr : &*found;
}

bool is_known(std::span<const ResultsColumn> columns, const std::string& name) {
  return std::ranges::any_of(columns, [&](const auto& column) { return find(column, name); });
}

bool has_row(std::span<const ResultsColumn> columns, const MetricValue& value) {
  if (value.unit != MetricUnit::kFraction || !is_known(columns, value.name)) return false;
  for (const std::string group : kShotGroups) {
    if (!value.name.starts_with(group)) continue;
    const std::string sets = value.name.substr(group.size());
    return std::ranges::count_if(kShotGroups, [&](const char* other) { return is_known(columns, other + sets); }) > 1;
  }
  return true;
}

std::vector<std::string> row_names(std::span<const ResultsColumn> columns) {
  std::vector<std::string> names;
  for (const ResultsColumn& column : columns) {
    for (const MetricValue& value : column.values) {
      const bool is_new = std::ranges::count(names, value.name) == 0;
      if (is_new && has_row(columns, value)) names.push_back(value.name);
    }
  }
  return names;
}

std::string cell(const ResultsColumn& column, const std::string& name) {
  const MetricValue* value = find(column, name);
  if (!value) return fmt::format("{:>6}", "-");
  const MetricValue* size = value->over == MeanOver::kSamples ? find(column, value->size) : nullptr;
  return fmt::format("{:6.2f}", 100 * value->value) + (size ? fmt::format(" (size {:.2f})", size->value) : "");
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
