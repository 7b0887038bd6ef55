#include "src/papers/table/table_result.h"

#include <algorithm>
#include <cmath>

namespace settrain {

std::optional<double> TableCell::difference() const {
  if (!ours || std::isnan(ours->mean) || !printed_value) return std::nullopt;
  return ours->mean - *printed_value;
}

bool TableCell::is_outside() const {
  constexpr int64_t kFewestSeeds = 3;
  const auto by = difference();
  return by && ours->count >= kFewestSeeds && std::abs(*by) > ours->half_width;
}

std::vector<size_t> columns_of(const Table& table, const TablePart& part) {
  std::vector<size_t> columns;
  for (size_t column = 0; column < table.columns.each.size(); ++column) {
    const bool is_there = part.printed.empty() || table.measure ||
                          std::any_of(part.printed.begin(), part.printed.end(),
                                      [&](const auto& row) { return !row[column].is_absent(); });
    if (is_there) columns.push_back(column);
  }
  return columns;
}

double printed_in_our_unit(double printed, PrintedUnit unit) {
  return unit == PrintedUnit::kPercent ? printed / 100 : printed;
}

std::vector<std::string> notes_at(const Table& table, const TablePart& part, size_t row, size_t column) {
  std::vector<std::string> texts;
  for (const TableNote& note : part.notes) {
    if (!note.row.empty() && note.row == table.rows.each[row].label &&
        (note.column.empty() || note.column == table.columns.each[column].label)) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

}  // namespace settrain
