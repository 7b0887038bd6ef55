// The runs behind a printed table or figure, as its file says them: every row with every column, over seeds.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/sweep/grid.h"

namespace settrain {

/// A row or a column.
struct DesignEntry {
  std::string label;
  Settings set{};  // of its runs
  Settings let{};  // words that stand for a text: {k}
};

struct DesignAxis {
  std::string name;
  std::vector<DesignEntry> each{};

  /// Its place, or nothing.
  std::optional<size_t> find(const std::string& label) const;
};

struct RunDesign {
  std::filesystem::path file{};
  std::string name{}, preset{};  // "icml2022/4"; "paper", "small", "smoke"
  std::string paper{}, title{};
  std::string says{};  // a sentence of the preset, if any
  std::filesystem::path base{};
  Settings common{}, over{};  // settings of every run, below and above those of rows and columns
  std::vector<std::string> seeds{};
  DesignAxis rows{}, columns{};

  /// "icml2022-4", "icml2022-4-smoke": of files and folders.
  std::string file_name() const;

  /// `text` with every {word} of the row's and the column's `let` in its place.
  std::string substitute(const std::string& text, size_t row, size_t column) const;

  /// Everything that is set for the cell's runs, seeds apart.
  Settings settings(size_t row, size_t column) const;
};

/// A row and a column that runs are needed for, with what is shown of them.
struct WantedCell {
  size_t row = 0, column = 0;
  std::vector<std::string> selects{};  // validation metrics whose best checkpoints count: "val/top5"
  std::vector<std::string> metrics{};  // of the runs' results: "test/top5"
  std::vector<std::string> logged{};   // of their epochs: "train/top5"
};

/// Adds `text` where it is not in the list.
void add_once(std::vector<std::string>& list, const std::string& text);

/// The sweep that trains what these cells, one at least, need.
Grid grid_of(const RunDesign& design, const std::vector<WantedCell>& cells);

/// Every metric of a cell is measured by the cell's own config, on a split that it evaluates. Throws ConfigError that
/// names the design's file, the row and the column.
void check_cells(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema);

/// The names of all designs below a folder, "icml2022/4", sorted; numbers as numbers.
std::vector<std::string> design_names(const std::filesystem::path& folder);

/// The file of a table or a figure (`what`) by its name, by a path, or by the name of another printed one that comes
/// from the same runs ("icml2022/6"); `numbers` gives those of a file. Throws ConfigError with the nearest name.
std::filesystem::path find_design(const std::filesystem::path& folder, const std::string& name, const std::string& what,
                                  const std::function<std::vector<std::string>(const std::filesystem::path&)>& numbers);

}  // namespace settrain
