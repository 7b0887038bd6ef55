// The runs behind a printed table or figure, as its file says them: every row with every column, over seeds.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/studies/sweep/grid.h"

namespace settrain {

/// `text` with every {word} of `let` replaced by what it stands for.
std::string with_words(std::string text, const Settings& let);

/// A row or a column.
struct DesignEntry {
  std::string label;
  Settings set{};  // of its runs
  Settings let{};  // words that stand for a text: {k}
  config::Origin origin{};
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
  Settings common{}, preset_settings{};  // settings of every run, below and above those of rows and columns
  std::map<std::pair<std::string, std::string>, config::Origin> places{};  // of settings, as the file writes them
  std::vector<std::string> seeds{};
  DesignAxis rows{}, columns{};
  std::vector<std::string> selects{};  // of all that is shown: what every run's config has in `select`

  /// "icml2022-4", "icml2022-4-smoke": of files and folders.
  std::string file_name() const;

  /// `text` with every {word} of the row's and the column's `let` in its place.
  std::string substitute(const std::string& text, size_t row, size_t column) const;

  /// Everything that is set for the cell's runs, seeds apart.
  Settings settings(size_t row, size_t column) const;

  /// The place in the file of each of these, "4.yaml:12:30".
  std::vector<std::string> places_of_settings(size_t row, size_t column) const;

 private:
  Settings written_settings(size_t row, size_t column) const;
};

/// A row and a column that runs are needed for, with what is shown of them.
struct WantedCell {
  size_t row = 0, column = 0;
  std::vector<std::string> selects{};    // whose checkpoints count: "val/top5", "last"
  std::vector<std::string> metrics{};    // of the runs' results: "test/top5"
  std::vector<std::string> set_sizes{};  // whose histograms are: "test/avg5", "test/few_avg5"
  std::vector<std::string> logged{};     // of their epochs: "train/top5"
};

/// Adds `text` where it is not in the list.
void add_once(std::vector<std::string>& list, const std::string& text);

/// The `selects` of all cells, each once.
std::vector<std::string> all_selects(const std::vector<WantedCell>& cells);

/// The sweep that trains what these cells, one at least, need. Its runs do not depend on which others are wanted.
Grid grid_of(const RunDesign& design, const std::vector<WantedCell>& cells);

}  // namespace settrain
