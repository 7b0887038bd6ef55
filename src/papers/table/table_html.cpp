#include <fmt/format.h>

#include "src/core/text.h"
#include "src/papers/table/table_cells.h"
#include "src/papers/table/table_formats.h"

namespace settrain {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --text: #1a1a1a; --quiet: #5f6368; --line: #d0d4d9; --mark: #b3261e; --page: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8eaed; --quiet: #a5abb2; --line: #3c4043; --mark: #ff8a80; --page: #17191c; }
}
body { font: 16px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0; }
caption { text-align: left; font-weight: 600; padding: 0.5rem 0; }
th, td { padding: 0.4rem 0.9rem 0.4rem 0; text-align: left; vertical-align: top; border-top: 1px solid var(--line); white-space: nowrap; }
thead th { border-top: 2px solid var(--text); }
.printed, .against, ul { color: var(--quiet); font-size: 0.85rem; }
.printed, .against { display: block; }
.outside { color: var(--mark); font-weight: 600; }
)";

std::string html_list(const std::vector<std::string>& sentences) {
  std::string text = "<ul>\n";
  for (const std::string& sentence : sentences) text += fmt::format("<li>{}</li>\n", escape_html(sentence));
  return text + "</ul>\n";
}

std::string cell_html(const FilledTable& filled, const FilledPart& part, const TableCell& cell) {
  std::string text = fmt::format("<td>{}", escape_html(our_text(*part.part, cell)));
  const std::string printed = printed_text(cell), difference = difference_text(*part.part, cell);
  if (!printed.empty()) {
    text += fmt::format("<span class=\"printed\">printed {}", escape_html(printed));
    if (!difference.empty()) {
      text +=
          fmt::format(", <span{}>{}</span>", cell.is_outside() ? " class=\"outside\"" : "", escape_html(difference));
    }
    text += "</span>";
  }
  if (cell.against) {
    text += fmt::format("<span class=\"against\">minus {}: {}</span>", escape_html(filled.table->against),
                        escape_html(against_text(*part.part, cell)));
  }
  return text + "</td>";
}

}  // namespace

std::string table_html(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}: {1}</title>\n<style>{2}</style>\n</head>\n<body>\n<h1>{0}: {1}</h1>\n{3}",
      escape_html(table.name), escape_html(table.title), kStyle, html_list(heading(filled)));
  for (const FilledPart& part : filled.parts) {
    text += fmt::format("<div class=\"scroll\">\n<table>\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">{}</th>",
                        escape_html(part_title(part)), escape_html(table.rows.name));
    for (const size_t column : part.columns) {
      text += fmt::format("<th scope=\"col\">{}</th>", escape_html(table.columns.each[column].label));
    }
    text += "</tr></thead>\n<tbody>\n";
    for (size_t i = 0; i < part.cells.size(); ++i) {
      text += fmt::format("<tr><th scope=\"row\">{}</th>", escape_html(table.rows.each[part.part->rows[i]].label));
      for (const TableCell& cell : part.cells[i]) text += cell_html(filled, part, cell);
      text += "</tr>\n";
    }
    text += "</tbody>\n</table>\n</div>\n" + html_list(part_notes(filled, part));
  }
  text += html_list(legend(filled));
  if (!filled.remarks.empty()) text += "<h2>Not in the table</h2>\n" + html_list(filled.remarks);
  return text + "</body>\n</html>\n";
}

}  // namespace settrain
