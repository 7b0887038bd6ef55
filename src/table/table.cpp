#include "src/table/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/core/error.h"

namespace settrain {
namespace {

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

std::optional<size_t> TableAxis::find(const std::string& label) const {
  const auto found =
      std::find_if(each.begin(), each.end(), [&](const TableEntry& entry) { return entry.label == label; });
  return found == each.end() ? std::nullopt : std::optional(static_cast<size_t>(found - each.begin()));
}

bool TablePart::has_row(size_t row) const {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

const PrintedCell& TablePart::printed_at(size_t row, size_t column) const {
  static const PrintedCell kNothing{};
  const auto found = std::find(rows.begin(), rows.end(), row);
  if (printed.empty() || found == rows.end()) return kNothing;
  return printed[static_cast<size_t>(found - rows.begin())][column];
}

std::string Table::file_name() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '/', '-');
  return preset == "paper" ? text : text + "-" + preset;
}

std::string Table::substitute(const std::string& text, size_t row, size_t column) const {
  std::string made = text;
  for (const TableEntry* entry : {&rows.each[row], &columns.each[column]}) {
    for (const auto& [word, value] : entry->let) {
      const std::string braced = "{" + word + "}";
      for (size_t at = made.find(braced); at != std::string::npos; at = made.find(braced, at + value.size())) {
        made.replace(at, braced.size(), value);
      }
    }
  }
  return made;
}

Settings Table::settings(size_t row, size_t column) const {
  Settings all;
  for (const Settings* some : {&common, &rows.each[row].set, &columns.each[column].set, &over}) {
    for (const auto& [key, value] : *some) set(all, key, substitute(value, row, column));
  }
  return all;
}

bool Table::is_wanted(size_t row, size_t column) const {
  return std::any_of(parts.begin(), parts.end(), [&](const TablePart& part) {
    return part.has_row(row) && (part.printed.empty() || !part.printed_at(row, column).is_absent());
  });
}

Grid grid_of(const Table& table) {
  if (table.measure) throw ConfigError(table.name + " is measured, and trains nothing");
  Grid grid;
  grid.base = table.base;
  grid.seeds = table.seeds;
  std::vector<std::string> selects;
  GridStep step{.kind = GridStep::Kind::kList};
  for (size_t row = 0; row < table.rows.each.size(); ++row) {
    for (size_t column = 0; column < table.columns.each.size(); ++column) {
      if (!table.is_wanted(row, column)) continue;
      Settings settings = table.settings(row, column);
      if (std::find(step.list.begin(), step.list.end(), settings) == step.list.end()) {
        step.list.push_back(std::move(settings));
      }
      for (const TablePart& part : table.parts) {
        if (part.has_row(row)) add_once(selects, table.substitute(part.select, row, column));
      }
    }
  }
  grid.steps = {std::move(step)};
  grid.select = selects.front();
  grid.also.assign(selects.begin() + 1, selects.end());
  return grid;
}

}  // namespace settrain
