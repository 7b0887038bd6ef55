// A table of a paper, or one of our own, as its file says it: what is trained for it, and what was printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/sweep/grid.h"
#include "src/table/printed_cell.h"

namespace settrain {

/// A row or a column.
struct TableEntry {
  std::string label;
  Settings set{};  // of its runs
  Settings let{};  // words that stand for a text: {k}
};

struct TableAxis {
  std::string name;
  std::vector<TableEntry> each{};

  /// Its place, or nothing.
  std::optional<size_t> find(const std::string& label) const;
};

/// What stands behind a printed ±.
enum class PrintedSpread { kNone, kInterval95, kDeviation };

/// How printed numbers are to be read: 94.2, 0.942, or seconds.
enum class PrintedUnit { kPercent, kFraction, kSeconds };

/// A remark on a cell; on a whole row where `column` is empty, on the whole part where `row` is empty too.
struct TableNote {
  std::string row, column, text;
};

/// One printed table; several may come from the same runs.
struct TablePart {
  std::string number, title;
  std::string metric, select;         // "test/top{k}"; the checkpoint that is best by "val/top{k}"
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

/// What a table of times or of stability measures, in place of training.
struct TableMeasure {
  std::string what;  // "smoothed_forward", "smoothed_backward", "smoothed_stability"
  int64_t k = 5, batch = 256, runs = 50;
};

struct Table {
  std::filesystem::path file{};
  std::string name{}, preset{};  // "icml2022/4"; "paper", "small", "smoke"
  std::string paper{}, title{};
  std::string tested{}, says{};  // sentences below and above it, if any
  std::string against{};         // the column that the others are compared with by seed, if any
  std::filesystem::path base{};
  Settings common{}, over{};  // settings of every run, below and above those of rows and columns
  std::vector<std::string> seeds{};
  TableAxis rows{}, columns{};
  std::vector<TablePart> parts{};
  std::optional<TableMeasure> measure{};

  /// "icml2022-4", "icml2022-4-smoke": of files and folders.
  std::string file_name() const;

  /// `text` with every {word} of the row's and the column's `let` in its place.
  std::string substitute(const std::string& text, size_t row, size_t column) const;

  /// Everything that is set for the cell's runs, seeds apart.
  Settings settings(size_t row, size_t column) const;

  /// Whether a part has that cell; one that the paper leaves empty is trained for none.
  bool is_wanted(size_t row, size_t column) const;
};

/// Reads a table's file, with its preset of that name over the rest; "paper" is the file without one. Throws
/// ConfigError with every offender at its file:line:column.
Table read_table(const std::filesystem::path& file, const std::string& preset);

/// The names of all tables below a folder, "icml2022/4", sorted; numbers as numbers.
std::vector<std::string> table_names(const std::filesystem::path& folder);

/// The file of a table by its name, or by that of another printed table that comes from the same runs ("icml2022/6").
/// Throws ConfigError with the nearest name.
std::filesystem::path find_table(const std::filesystem::path& folder, const std::string& name);

/// The sweep that trains what the table needs. Throws ConfigError where a table is measured and trains nothing.
Grid grid_of(const Table& table);

}  // namespace settrain
