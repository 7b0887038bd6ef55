#include "src/table/table_result.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace settrain {

std::optional<double> TableCell::difference() const {
  if (!ours || !printed_value) return std::nullopt;
  return ours->mean - *printed_value;
}

bool TableCell::is_outside() const {
  constexpr int64_t kFewestSeeds = 3;
  const auto by = difference();
  return by && ours->count >= kFewestSeeds && std::abs(*by) > ours->half_width;
}

std::pair<int64_t, int64_t> FilledTable::seeds() const {
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;
  for (const FilledPart& part : parts) {
    for (size_t r = 0; r < part.cells.size(); ++r) {
      for (size_t c = 0; c < part.cells[r].size(); ++c) {
        if (part.cells[r][c].metric.empty()) continue;
        fewest = std::min(fewest, std::ssize(part.cells[r][c].values));
        most = std::max(most, std::ssize(part.cells[r][c].values));
      }
    }
  }
  return {std::min(fewest, most), most};
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
