#include <fmt/format.h>

#include <algorithm>

#include "src/core/table_text.h"
#include "src/papers/table/table_cells.h"
#include "src/papers/table/table_formats.h"

namespace settrain {
namespace {

using Cells = std::vector<std::string>;

// A line of the table, unless all of its cells are empty.
template <class Text>
void add_line(const std::string& label, const FilledPart& part, const std::vector<TableCell>& cells, const Text& text,
              std::vector<Cells>& lines) {
  Cells line{label};
  for (const TableCell& cell : cells) line.push_back(text(*part.part, cell));
  if (std::any_of(line.begin() + 1, line.end(), [](const std::string& cell) { return !cell.empty(); })) {
    lines.push_back(std::move(line));
  }
}

std::string markdown_list(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += fmt::format("- {}\n", sentence);
  return text;
}

}  // namespace

std::string table_markdown(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = fmt::format("# {}: {}\n\n{}", table.name, table.title, markdown_list(heading(filled)));
  for (const FilledPart& part : filled.parts) {
    Cells head{table.rows.name};
    for (const size_t column : part.columns) head.push_back(table.columns.each[column].label);
    std::vector<Cells> lines;
    for (size_t i = 0; i < part.cells.size(); ++i) {
      add_line(table.rows.each[part.part->rows[i]].label, part, part.cells[i], our_text, lines);
      add_line(
          "printed", part, part.cells[i], [](const TablePart&, const TableCell& cell) { return printed_text(cell); },
          lines);
      add_line("difference", part, part.cells[i], difference_text, lines);
      add_line("minus " + table.against, part, part.cells[i], against_text, lines);
    }
    text += fmt::format("\n## {}\n\n{}\n{}", part_title(part), markdown_table(head, lines),
                        markdown_list(part_notes(filled, part)));
  }
  text += "\n" + markdown_list(legend(filled));
  if (!filled.remarks.empty()) text += "\nNot in the table:\n\n" + markdown_list(filled.remarks);
  return text;
}

}  // namespace settrain
