#include "src/papers/table/table_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/run_folder/run_folder.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

// A number as a text: accuracies in percent; seconds and sizes of sets with three digits that count.
std::string number(const TablePart& part, double value, bool is_signed = false) {
  if (std::isnan(value)) return "-";
  if (part.unit == PrintedUnit::kSeconds || part.unit == PrintedUnit::kClasses) {
    return is_signed ? fmt::format("{:+.3g}", value) : fmt::format("{:.3g}", value);
  }
  return format_value(value, Unit::kFraction, is_signed);
}

std::string with_width(const TablePart& part, const MeanInterval& interval, bool is_signed = false) {
  std::string text = number(part, interval.mean, is_signed);
  if (interval.has_interval() && !std::isnan(interval.mean)) text += " ± " + number(part, interval.half_width);
  return text;
}

// The head of a part's table.
Names head_of(const FilledTable& filled, const FilledPart& part) {
  Names head{filled.table->rows.name};
  for (const size_t column : part.columns) head.push_back(filled.table->columns.each[column].label);
  return head;
}

// The texts that `text` becomes in the part's cells, each once.
Names metrics_of(const FilledTable& filled, const FilledPart& part, const std::string& text) {
  Names names;
  for (const size_t row : part.part->rows) {
    for (const size_t column : part.columns) {
      add_once(names, filled.table->substitute(text, row, column));
    }
  }
  return names;
}

template <class Holds>
bool any_cell(const FilledTable& filled, const Holds& holds) {
  for (const FilledPart& part : filled.parts) {
    for (const auto& row : part.cells) {
      if (std::any_of(row.begin(), row.end(), holds)) return true;
    }
  }
  return false;
}

// "94.21 ± 0.30 (12.6/42.9/71.7), size 5.01, n=4"; "pending" where there is no run yet; nothing where the table has no
// such cell. ± is half of the 95 % interval.
std::string our_text(const TablePart& part, const TableCell& cell) {
  if (!cell.word.empty()) return cell.word;
  if (cell.metric.empty()) return "";
  if (!cell.ours) return "pending";
  std::string text = with_width(part, *cell.ours);
  if (!cell.groups.empty()) {
    Names means;
    for (const MeanInterval& group : cell.groups) means.push_back(number(part, group.mean));
    text += fmt::format(" ({})", fmt::join(means, "/"));
  }
  if (cell.size) text += fmt::format(", size {:.2f}", cell.size->mean);
  if (!cell.seeds.empty()) text += fmt::format(", n={}", cell.ours->count);
  return text;
}

// The cell as it is printed; nothing where there is none.
std::string printed_text(const TablePart&, const TableCell& cell) {
  return cell.printed.is_absent() ? "" : cell.printed.text;
}

// "-0.03"; with a star where the printed value lies outside our interval. Nothing where there is none.
std::string difference_text(const TablePart& part, const TableCell& cell) {
  const auto by = cell.difference();
  if (!by) return "";
  return number(part, *by, true) + (cell.is_outside() ? " *" : "");
}

// "+1.20 ± 0.43": by seed, against the column that the table compares with. Nothing where there is none.
std::string against_text(const TablePart& part, const TableCell& cell) {
  return cell.against ? with_width(part, *cell.against, true) : "";
}

// "Table 4: Top-5 accuracy", or the title alone.
std::string part_title(const FilledPart& part) {
  const std::string& number = part.part->number;
  return number.empty() ? part.part->title : fmt::format("Table {}: {}", number, part.part->title);
}

// The sentences below a part: what is selected and tested, notes on cells.
Names part_notes(const FilledTable& filled, const FilledPart& part) {
  Names lines;
  if (!filled.table->measure) {
    Names selects = metrics_of(filled, part, part.part->select), checkpoints;
    const bool has_last = std::erase(selects, RunFolder::kLast) > 0;
    if (!selects.empty())
      checkpoints.push_back(fmt::format("the checkpoint that is best by {}", fmt::join(selects, ", ")));
    if (has_last) checkpoints.emplace_back("the last epoch");
    lines.push_back(fmt::format("{}, of {}.", fmt::join(metrics_of(filled, part, part.part->metric), ", "),
                                fmt::join(checkpoints, " or of ")));
  }
  Names groups;
  for (const std::string& group : part.part->groups) {
    groups.push_back(fmt::format("{}", fmt::join(metrics_of(filled, part, group), ", ")));
  }
  if (!groups.empty()) lines.push_back(fmt::format("In parentheses: {}.", fmt::join(groups, "; ")));
  if (part.part->spread == PrintedSpread::kInterval95) lines.emplace_back("Printed ±: 95 % interval.");
  if (part.part->spread == PrintedSpread::kDeviation) lines.emplace_back("Printed ±: standard deviation over seeds.");
  for (const TableNote& note : part.part->notes) {
    // A preset may have dropped the row or the column.
    if (!note.row.empty() && !filled.table->rows.find(note.row)) continue;
    if (!note.column.empty() && !filled.table->columns.find(note.column)) continue;
    std::string place = note.row;
    if (!note.column.empty()) place += (place.empty() ? "" : ", ") + note.column;
    lines.push_back(place.empty() ? note.text : fmt::format("{}: {}", place, note.text));
  }
  return lines;
}

// The sentences above all parts: the paper, the preset, the number of runs.
Names heading(const FilledTable& filled) {
  const Table& table = *filled.table;
  Names lines;
  if (!table.paper.empty()) {
    lines.push_back(table.paper + (table.has_preset() ? "." : ". The paper's protocol."));
  }
  if (table.has_preset()) lines.push_back(fmt::format("Preset {}. {}", table.preset, table.says));
  if (table.measure) {
    // Stability is seen in one run.
    const bool is_timed = !table.measure->is_stability();
    lines.push_back(fmt::format("Measured on {}: k {}, batch {}{}.", filled.measured_on, table.measure->k,
                                table.measure->batch,
                                is_timed ? fmt::format(", mean of {} runs", table.measure->runs) : ""));
  } else {
    lines.push_back(filled.wanted > 0 ? fmt::format("{} of {} runs are there.", filled.found, filled.wanted)
                                      : fmt::format("Collected from {} runs.", filled.found));
  }
  return lines;
}

// The sentences below all parts: the meaning of ± and *.
Names legend(const FilledTable& filled) {
  Names lines;
  if (!filled.table->measure) {
    lines.emplace_back(
        "Accuracies in percent. ± is half of a 95 % interval for the mean over seeds, by Student's t; n is the number of "
        "seeds.");
  }
  if (any_cell(filled, [](const TableCell& cell) { return cell.ours && cell.ours->deserves_warning(); })) {
    lines.emplace_back("With two seeds the interval is 12.7 standard errors wide to each side, and says little.");
  }
  if (any_cell(filled, [](const TableCell& cell) { return cell.size.has_value(); })) {
    lines.emplace_back("size is the mean number of classes in the returned sets.");
  }
  if (any_cell(filled, [](const TableCell& cell) { return cell.difference().has_value(); })) {
    lines.emplace_back(
        "difference is ours minus the paper's. * marks a printed value outside of our interval, said from three seeds on.");
    if (filled.table->has_preset()) {
      lines.emplace_back("Another preset than the paper's protocol need not give the paper's numbers.");
    }
  }
  const bool is_reduced = !filled.table->paper.empty() && filled.table->has_preset();
  if (!filled.table->tested.empty()) lines.push_back((is_reduced ? "The paper's: " : "") + filled.table->tested);
  return lines;
}

// The notes on a cell and on its row.
Names notes_at(const Table& table, const TablePart& part, size_t row, size_t column) {
  Names texts;
  for (const TableNote& note : part.notes) {
    if (!note.row.empty() && note.row == table.rows.each[row].label &&
        (note.column.empty() || note.column == table.columns.each[column].label)) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

// A number of CSV; nothing where there is none.
std::string csv_number(std::optional<double> value) {
  return value && !std::isnan(*value) ? fmt::format("{}", *value) : "";
}

// The number that `member` points to.
std::string csv_number(const std::optional<MeanInterval>& interval, double MeanInterval::*member) {
  return interval ? csv_number((*interval).*member) : "";
}

// As many digits as are printed, though percents were divided by 100.
std::string printed_number(std::optional<double> value) {
  return value ? fmt::format("{:.10g}", *value) : "";
}

std::string spread_name(PrintedSpread spread) {
  if (spread == PrintedSpread::kInterval95) return "interval95";
  return spread == PrintedSpread::kDeviation ? "deviation" : "none";
}

// A line of the table, unless all of its cells are empty.
template <class Text>
void add_line(const std::string& label, const FilledPart& part, const std::vector<TableCell>& cells, const Text& text,
              std::vector<Names>& lines) {
  Names line{label};
  for (const TableCell& cell : cells) line.push_back(text(*part.part, cell));
  if (std::any_of(line.begin() + 1, line.end(), [](const std::string& cell) { return !cell.empty(); })) {
    lines.push_back(std::move(line));
  }
}

std::string markdown_list(const Names& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += fmt::format("- {}\n", sentence);
  return text;
}

std::string latex_escaped(const std::string& text) {
  static const std::map<char, std::string> kSpecial{
      {'~', "\\textasciitilde{}"}, {'^', "\\textasciicircum{}"}, {'\\', "\\textbackslash{}"}, {'*', "$^{*}$"},
      {'|', "\\textbar{}"},        {'<', "\\textless{}"},        {'>', "\\textgreater{}"}};
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "±") == 0) {
      made += "$\\pm$";
      ++i;
      continue;
    }
    const auto special = kSpecial.find(text[i]);
    if (std::string_view("&%$#_{}").find(text[i]) != std::string_view::npos) made += '\\';
    made += special == kSpecial.end() ? std::string(1, text[i]) : special->second;
  }
  return made;
}

std::string latex_row(const Names& cells, const char* style = "") {
  Names made;
  for (const std::string& cell : cells)
    made.push_back(cell.empty() && !made.empty() ? "" : style + latex_escaped(cell));
  return fmt::format("{} \\\\\n", fmt::join(made, " & "));
}

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

std::string html_list(const Names& sentences) {
  std::string text = "<ul>\n";
  for (const std::string& sentence : sentences) text += fmt::format("<li>{}</li>\n", escape_html(sentence));
  return text + "</ul>\n";
}

std::string cell_html(const FilledTable& filled, const FilledPart& part, const TableCell& cell) {
  std::string text = fmt::format("<td>{}", escape_html(our_text(*part.part, cell)));
  const std::string printed = printed_text(*part.part, cell), difference = difference_text(*part.part, cell);
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

std::string table_csv(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text =
      "table,part,row,column,metric,unit,seeds,mean,half_width_95,deviation,set_size,printed,printed_spread,"
      "printed_spread_is,difference,outside,against,against_mean,against_half_width_95,note\n";
  const auto unit = [&](const TablePart& part) {
    return part.unit == PrintedUnit::kClasses ? "classes" : table.measure ? "seconds" : "fraction";
  };
  const auto add = [&](const FilledPart& part, size_t row, size_t column, const TableCell& cell) {
    const auto& ours = cell.ours;
    const std::string outside = cell.difference() && ours->count > 2 ? (cell.is_outside() ? "true" : "false") : "";
    text += csv_row(
        {table.file_name(),
         part.part->number,
         table.rows.each[row].label,
         table.columns.each[column].label,
         cell.metric,
         cell.word.empty() ? unit(*part.part) : "word",
         fmt::format("{}", fmt::join(cell.seeds, " ")),
         cell.word.empty() ? csv_number(ours, &MeanInterval::mean) : cell.word,
         csv_number(ours, &MeanInterval::half_width),
         csv_number(ours, &MeanInterval::deviation),
         csv_number(cell.size, &MeanInterval::mean),
         cell.printed_value ? printed_number(cell.printed_value) : (cell.printed.is_absent() ? "" : cell.printed.text),
         csv_number(cell.printed_spread),
         cell.printed_spread ? spread_name(part.part->spread) : "",
         csv_number(cell.difference()),
         outside,
         cell.against ? table.against : "",
         csv_number(cell.against, &MeanInterval::mean),
         csv_number(cell.against, &MeanInterval::half_width),
         fmt::format("{}", fmt::join(notes_at(table, *part.part, row, column), "; "))});
  };
  for (const FilledPart& part : filled.parts) {
    for (size_t i = 0; i < part.cells.size(); ++i) {
      const size_t row = part.part->rows[i];
      for (size_t place = 0; place < part.columns.size(); ++place) {
        const size_t column = part.columns[place];
        const TableCell& cell = part.cells[i][place];
        if (cell.metric.empty()) continue;
        add(part, row, column, cell);
        // The numbers in parentheses are cells of their own.
        for (size_t g = 0; g < part.part->groups.size(); ++g) {
          TableCell group;
          group.metric = table.substitute(part.part->groups[g], row, column);
          group.seeds = cell.seeds;
          if (g < cell.groups.size()) group.ours = cell.groups[g];
          if (g < cell.printed.groups.size()) {
            group.printed_value = printed_in_our_unit(cell.printed.groups[g], part.part->unit);
          }
          add(part, row, column, group);
        }
      }
    }
  }
  return text;
}

std::string table_markdown(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = fmt::format("# {}: {}\n\n{}", table.name, table.title, markdown_list(heading(filled)));
  for (const FilledPart& part : filled.parts) {
    std::vector<Names> lines;
    for (size_t i = 0; i < part.cells.size(); ++i) {
      add_line(table.rows.each[part.part->rows[i]].label, part, part.cells[i], our_text, lines);
      add_line("printed", part, part.cells[i], printed_text, lines);
      add_line("difference", part, part.cells[i], difference_text, lines);
      add_line("minus " + table.against, part, part.cells[i], against_text, lines);
    }
    text += fmt::format("\n## {}\n\n{}\n{}", part_title(part), markdown_table(head_of(filled, part), lines),
                        markdown_list(part_notes(filled, part)));
  }
  text += "\n" + markdown_list(legend(filled));
  if (!filled.remarks.empty()) text += "\nNot in the table:\n\n" + markdown_list(filled.remarks);
  return text;
}

std::string table_latex(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = "% Needs \\usepackage{booktabs}.\n";
  for (const std::string& line : heading(filled)) text += "% " + line + "\n";
  for (const FilledPart& part : filled.parts) {
    text += fmt::format("\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
                        std::string(part.columns.size(), 'c'));
    text += latex_row(head_of(filled, part)) + "\\midrule\n";
    for (size_t i = 0; i < part.cells.size(); ++i) {
      Names ours{table.rows.each[part.part->rows[i]].label};
      for (const TableCell& cell : part.cells[i]) ours.push_back(our_text(*part.part, cell));
      text += latex_row(ours);
      const auto printed_and_difference = [](const TablePart& of, const TableCell& cell) {
        const std::string difference = difference_text(of, cell);
        return printed_text(of, cell) + (difference.empty() ? "" : ", " + difference);
      };
      std::vector<Names> below;
      add_line("printed, difference", part, part.cells[i], printed_and_difference, below);
      add_line("minus " + table.against, part, part.cells[i], against_text, below);
      for (const Names& line : below) text += latex_row(line, "\\footnotesize ");
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

std::string table_html(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}: {1}</title>\n<style>{2}</style>\n</head>\n<body>\n<h1>{0}: {1}</h1>\n{3}",
      escape_html(table.name), escape_html(table.title), kStyle, html_list(heading(filled)));
  for (const FilledPart& part : filled.parts) {
    text += fmt::format("<div class=\"scroll\">\n<table>\n<caption>{}</caption>\n<thead><tr>",
                        escape_html(part_title(part)));
    for (const std::string& label : head_of(filled, part)) {
      text += fmt::format("<th scope=\"col\">{}</th>", escape_html(label));
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
