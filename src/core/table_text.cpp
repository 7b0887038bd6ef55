#include "src/core/table_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "src/core/text.h"

namespace settrain {
namespace {

using Cells = std::vector<std::string>;

}  // namespace

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return fmt::format("\"{}\"", replace_characters(text, {{'"', "\"\""}}));
}

std::string csv_row(const Cells& cells) {
  Cells quoted;
  for (const std::string& cell : cells) quoted.push_back(csv_cell(cell));
  return fmt::format("{}\n", fmt::join(quoted, ","));
}

std::string markdown_table(const Cells& head, const std::vector<Cells>& rows) {
  std::vector<Cells> lines{head};
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::vector<size_t> widths(head.size(), 3);
  for (Cells& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = replace_characters(line[i], {{'|', "\\|"}, {'\n', " "}});
      widths[i] = std::max(widths[i], count_characters(line[i]));
    }
  }
  const auto row = [&widths](const Cells& cells) {
    std::string text = "|";
    for (size_t i = 0; i < cells.size(); ++i) {
      text += fmt::format(" {}{} |", cells[i], std::string(widths[i] - count_characters(cells[i]), ' '));
    }
    return text + "\n";
  };
  std::string text = row(lines.front()) + "|";
  for (const size_t width : widths) text += std::string(width + 2, '-') + "|";
  text += "\n";
  for (size_t i = 1; i < lines.size(); ++i) text += row(lines[i]);
  return text;
}

std::string wrap_words(const std::string& text, size_t columns, size_t indent) {
  std::istringstream lines(text);
  std::string wrapped;
  for (std::string line; std::getline(lines, line);) {
    if (!wrapped.empty()) line.insert(0, indent, ' ');
    while (count_characters(line) > columns) {
      const size_t cut = first_characters(line, columns).size(), first = line.find_first_not_of(' ');
      size_t end = line.rfind(' ', cut);
      // Blanks in front of the first word are no place to break the line.
      if (end == std::string::npos || end < first) end = line.find(' ', std::max(cut, first));
      const size_t next = line.find_first_not_of(' ', end);
      if (next == std::string::npos) break;
      wrapped += line.substr(0, line.find_last_not_of(' ', end) + 1) + "\n";
      line = std::string(indent, ' ') + line.substr(next);
    }
    wrapped += line + "\n";
  }
  return wrapped;
}

}  // namespace settrain
