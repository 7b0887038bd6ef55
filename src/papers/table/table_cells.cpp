#include "src/papers/table/table_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/run_folder/run_folder.h"

namespace settrain {
namespace {

// Accuracies in percent; seconds and sizes of sets with three digits that count.
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

using Names = std::vector<std::string>;

// Each of the texts that stand for `text` in the part's cells.
Names metrics_of(const FilledTable& filled, const FilledPart& part, const std::string& text) {
  Names names;
  for (const size_t row : part.part->rows) {
    for (const size_t column : part.columns) {
      const std::string name = filled.table->substitute(text, row, column);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
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

}  // namespace

std::string our_text(const TablePart& part, const TableCell& cell) {
  if (!cell.word.empty()) return cell.word;
  if (cell.metric.empty()) return "";
  if (!cell.ours) return "pending";
  std::string text = with_width(part, *cell.ours);
  if (!cell.groups.empty()) {
    std::vector<std::string> means;
    for (const MeanInterval& group : cell.groups) means.push_back(number(part, group.mean));
    text += fmt::format(" ({})", fmt::join(means, "/"));
  }
  if (cell.size) text += fmt::format(", size {:.2f}", cell.size->mean);
  if (!cell.seeds.empty()) text += fmt::format(", n={}", cell.ours->count);
  return text;
}

std::string printed_text(const TableCell& cell) {
  return cell.printed.is_absent() ? "" : cell.printed.text;
}

std::string difference_text(const TablePart& part, const TableCell& cell) {
  const auto by = cell.difference();
  if (!by) return "";
  return number(part, *by, true) + (cell.is_outside() ? " *" : "");
}

std::string against_text(const TablePart& part, const TableCell& cell) {
  return cell.against ? with_width(part, *cell.against, true) : "";
}

std::string part_title(const FilledPart& part) {
  const std::string& number = part.part->number;
  return number.empty() ? part.part->title : fmt::format("Table {}: {}", number, part.part->title);
}

std::vector<std::string> part_notes(const FilledTable& filled, const FilledPart& part) {
  std::vector<std::string> lines;
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
    // A preset may have dropped what it is about.
    if (!note.row.empty() && !filled.table->rows.find(note.row)) continue;
    if (!note.column.empty() && !filled.table->columns.find(note.column)) continue;
    std::string place = note.row;
    if (!note.column.empty()) place += (place.empty() ? "" : ", ") + note.column;
    lines.push_back(place.empty() ? note.text : fmt::format("{}: {}", place, note.text));
  }
  return lines;
}

std::vector<std::string> heading(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::vector<std::string> lines;
  if (!table.paper.empty()) {
    lines.push_back(table.paper + (table.preset == "paper" ? ". The paper's protocol." : "."));
  }
  if (table.preset != "paper") lines.push_back(fmt::format("Preset {}. {}", table.preset, table.says));
  if (table.measure) {
    // Stability is seen in one run.
    const bool is_timed = table.measure->what != "smoothed_stability";
    lines.push_back(fmt::format("Measured on {}: k {}, batch {}{}.", filled.measured_on, table.measure->k,
                                table.measure->batch,
                                is_timed ? fmt::format(", mean of {} runs", table.measure->runs) : ""));
  } else {
    lines.push_back(filled.wanted > 0 ? fmt::format("{} of {} runs are there.", filled.found, filled.wanted)
                                      : fmt::format("Collected from {} runs.", filled.found));
  }
  return lines;
}

std::vector<std::string> legend(const FilledTable& filled) {
  std::vector<std::string> lines;
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
    if (filled.table->preset != "paper") {
      lines.emplace_back("Another preset than the paper's protocol need not give the paper's numbers.");
    }
  }
  const bool is_reduced = !filled.table->paper.empty() && filled.table->preset != "paper";
  if (!filled.table->tested.empty()) lines.push_back((is_reduced ? "The paper's: " : "") + filled.table->tested);
  return lines;
}

}  // namespace settrain
