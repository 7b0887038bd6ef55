#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "src/core/table_text.h"
#include "src/papers/table/table_formats.h"

namespace settrain {
namespace {

std::string number(std::optional<double> value) {
  return value && !std::isnan(*value) ? fmt::format("{}", *value) : "";
}

// As many digits as are printed, though percents were divided by 100.
std::string printed_number(std::optional<double> value) {
  return value ? fmt::format("{:.10g}", *value) : "";
}

std::string spread_name(PrintedSpread spread) {
  if (spread == PrintedSpread::kInterval95) return "interval95";
  return spread == PrintedSpread::kDeviation ? "deviation" : "none";
}

}  // namespace

std::string table_csv(const FilledTable& filled) {
  const Table& table = *filled.table;
  std::string text = csv_row({"table",
                              "part",
                              "row",
                              "column",
                              "metric",
                              "unit",
                              "seeds",
                              "mean",
                              "half_width_95",
                              "deviation",
                              "set_size",
                              "printed",
                              "printed_spread",
                              "printed_spread_is",
                              "difference",
                              "outside",
                              "against",
                              "against_mean",
                              "against_half_width_95",
                              "note"});
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
         cell.word.empty() ? number(ours ? std::optional(ours->mean) : std::nullopt) : cell.word,
         number(ours ? std::optional(ours->half_width) : std::nullopt),
         number(ours ? std::optional(ours->deviation) : std::nullopt),
         number(cell.size ? std::optional(cell.size->mean) : std::nullopt),
         cell.printed_value ? printed_number(cell.printed_value) : (cell.printed.is_absent() ? "" : cell.printed.text),
         number(cell.printed_spread),
         cell.printed_spread ? spread_name(part.part->spread) : "",
         number(cell.difference()),
         outside,
         cell.against ? table.against : "",
         number(cell.against ? std::optional(cell.against->mean) : std::nullopt),
         number(cell.against ? std::optional(cell.against->half_width) : std::nullopt),
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
        // What stands in parentheses are cells of their own.
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

}  // namespace settrain
