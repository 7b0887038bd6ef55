#include "src/papers/table/table.h"

#include <algorithm>

#include "src/papers/design/find_design.h"

namespace settrain {

bool TablePart::has_row(size_t row) const {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

const PrintedCell& TablePart::printed_at(size_t row, size_t column) const {
  static const PrintedCell kNothing{};
  const auto found = std::find(rows.begin(), rows.end(), row);
  if (printed.empty() || found == rows.end()) return kNothing;
  return printed[static_cast<size_t>(found - rows.begin())][column];
}

std::vector<WantedCell> Table::wanted_cells() const {
  std::vector<WantedCell> cells;
  for (size_t row = 0; row < rows.each.size(); ++row) {
    for (size_t column = 0; column < columns.each.size(); ++column) {
      WantedCell cell{row, column};
      bool is_wanted = false;
      for (const TablePart& part : parts) {
        if (!part.has_row(row)) continue;
        is_wanted = is_wanted || part.printed.empty() || !part.printed_at(row, column).is_absent();
        add_once(cell.selects, substitute(part.select, row, column));
        add_once(cell.metrics, substitute(part.metric, row, column));
        for (const std::string& group : part.groups) add_once(cell.metrics, substitute(group, row, column));
      }
      if (is_wanted) cells.push_back(std::move(cell));
    }
  }
  return cells;
}

std::filesystem::path find_table(const std::filesystem::path& folder, const std::string& name) {
  return find_design(folder, name, "table", [](const std::filesystem::path& file) {
    std::vector<std::string> numbers;
    for (const TablePart& part : read_table(file, "paper").parts) numbers.push_back(part.number);
    return numbers;
  });
}

}  // namespace settrain
