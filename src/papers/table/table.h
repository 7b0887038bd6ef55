// A table of a paper, or one of our own, as its file says it: the runs that are trained for it, and the printed
// numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/papers/design/run_design.h"

namespace settrain {

/// The content of a printed table's cell: "94.2", "94.2±0.1", "36.3±0.3 (12.6/42.9/71.7)", "NA", or "-" where the
/// paper has no such cell. Numbers as they are printed.
struct PrintedCell {
  std::string text = "-";
  std::optional<double> value{}, spread{};  // before and after the ±
  std::vector<double> groups{};             // in parentheses

  /// Whether the paper has no such cell.
  bool is_absent() const { return text == "-"; }
};

/// Reads a printed cell, such as "94.21±0.30"; nullopt for any other text.
std::optional<PrintedCell> parse_printed(const std::string& text);

/// The meaning of a printed ±.
enum class PrintedSpread { kNone, kInterval95, kDeviation };

/// The unit of printed numbers: 94.2, 0.942, seconds, or classes of a set.
enum class PrintedUnit { kPercent, kFraction, kSeconds, kClasses };

/// A remark on a cell; on a whole row where `column` is empty, on the whole part where `row` is empty too.
struct TableNote {
  std::string row, column, text;
};

/// One printed table; several may come from the same runs.
struct TablePart {
  std::string number, title;
  std::string metric, select;         // "test/top{k}"; of which checkpoint: "val/top{k}", "last"
  std::vector<std::string> groups{};  // metrics of the numbers in parentheses
  PrintedSpread spread = PrintedSpread::kNone;
  PrintedUnit unit = PrintedUnit::kPercent;
  std::vector<size_t> rows{};                       // places in the table's rows
  std::vector<std::vector<PrintedCell>> printed{};  // [rows][columns]; empty where nothing is printed
  std::vector<TableNote> notes{};

  /// The cell in the table's row and column; one without a number where the part has no such row or prints nothing.
  const PrintedCell& printed_at(size_t row, size_t column) const;
  bool has_row(size_t row) const;
};

/// The measurement of a table of times or of stability, which trains nothing.
struct TableMeasure {
  static constexpr const char *kForward = "smoothed_forward", *kBackward = "smoothed_backward",
                              *kStability = "smoothed_stability";

  std::string what;  // one of these
  int64_t k = 5, batch = 256, runs = 50;

  bool is_forward() const { return what == kForward; }
  bool is_stability() const { return what == kStability; }
};

struct Table : RunDesign {
  std::string tested{};   // a sentence below the table, if any
  std::string against{};  // the column that the others are compared with by seed, if any
  std::vector<TablePart> parts{};
  std::optional<TableMeasure> measure{};

  /// The cells that some part has. Nothing is trained for a cell that the paper leaves empty.
  std::vector<WantedCell> wanted_cells() const;
};

/// Reads a table's file, with its preset of that name over the rest; "paper" is the file without one. Throws
/// ConfigError with every offender at its file:line:column.
Table read_table(const std::filesystem::path& file, const std::string& preset);

/// The file of a table by its name, or by that of another printed table that comes from the same runs ("icml2022/6").
/// See find_design().
std::filesystem::path find_table(const std::filesystem::path& folder, const std::string& name);

}  // namespace settrain
