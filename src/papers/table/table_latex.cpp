#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "src/papers/table/table_cells.h"
#include "src/papers/table/table_formats.h"

namespace settrain {
namespace {

std::string latex_escaped(const std::string& text) {
  static const std::map<char, std::string> kSpecial{{'&', "\\&"},
                                                    {'%', "\\%"},
                                                    {'$', "\\$"},
                                                    {'#', "\\#"},
                                                    {'_', "\\_"},
                                                    {'{', "\\{"},
                                                    {'}', "\\}"},
                                                    {'~', "\\textasciitilde{}"},
                                                    {'^', "\\textasciicircum{}"},
                                                    {'\\', "\\textbackslash{}"},
                                                    {'*', "$^{*}$"},
                                                    {'|', "\\textbar{}"},
                                                    {'<', "\\textless{}"},
                                                    {'>', "\\textgreater{}"}};
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "±") == 0) {
      made += "$\\pm$";
      ++i;
      continue;
    }
    const auto special = kSpecial.find(text[i]);
    made += special == kSpecial.end() ? std::string(1, text[i]) : special->second;
  }
  return made;
}

std::string row(const std::string& label, const std::vector<std::string>& cells, const char* style) {
  std::vector<std::string> made{style + latex_escaped(label)};
  for (const std::string& cell : cells) made.push_back(cell.empty() ? "" : style + latex_escaped(cell));
  return fmt::format("{} \\\\\n", fmt::join(made, " & "));
}

}  // namespace

std::string table_latex(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = "% Needs \\usepackage{booktabs}.\n";
  for (const std::string& line : heading(filled)) text += "% " + line + "\n";
  for (const FilledPart& part : filled.parts) {
    text += fmt::format("\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
                        std::string(part.columns.size(), 'c'));
    std::vector<std::string> head;
    for (const size_t column : part.columns) head.push_back(table.columns.each[column].label);
    text += row(table.rows.name, head, "") + "\\midrule\n";
    for (size_t i = 0; i < part.cells.size(); ++i) {
      std::vector<std::string> ours, printed, against;
      bool has_printed = false, has_against = false;
      for (const TableCell& cell : part.cells[i]) {
        ours.push_back(our_text(*part.part, cell));
        const std::string difference = difference_text(*part.part, cell);
        printed.push_back(printed_text(cell) + (difference.empty() ? "" : ", " + difference));
        against.push_back(against_text(*part.part, cell));
        has_printed |= !printed.back().empty();
        has_against |= !against.back().empty();
      }
      text += row(table.rows.each[part.part->rows[i]].label, ours, "");
      if (has_printed) text += row("printed, difference", printed, "\\footnotesize ");
      if (has_against) text += row("minus " + table.against, against, "\\footnotesize ");
    }
    text += fmt::format("\\bottomrule\n\\end{{tabular}}\n\\caption{{{}.",
                        latex_escaped(table.title + ". " + part_title(part)));
    for (const std::string& note : part_notes(filled, part)) text += " " + latex_escaped(note);
    for (const std::string& line : legend(filled)) text += " " + latex_escaped(line);
    text += fmt::format("}}\n\\label{{tab:{}-{}}}\n\\end{{table}}\n", table.file_name(),
                        part.part - table.parts.data() + 1);
  }
  return text;
}

}  // namespace settrain
