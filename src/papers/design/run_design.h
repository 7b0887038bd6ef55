// The runs behind a printed table or figure, as its file says them: every row with every column, over seeds. Also
// finds these files by name.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/studies/sweep/grid.h"

namespace settrain {

/// `text` with every {word} of `let` replaced by the text that it stands for.
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
  std::string name{}, preset{};  // "icml2022/4"; kWhole, "small", "smoke"
  std::string paper{}, title{};
  std::string says{};  // a sentence of the preset, if any
  std::filesystem::path base{};
  Settings common{}, preset_settings{};  // settings of every run, below and above those of rows and columns
  std::map<std::pair<std::string, std::string>, config::Origin> places{};  // of settings, as the file writes them
  std::vector<std::string> seeds{};
  DesignAxis rows{}, columns{};
  std::vector<std::string> selects{};  // `select` of every run's config: all that is shown needs these

  static constexpr const char* kWhole = "paper";  // the preset of the file itself, as the paper has it

  /// Whether a preset was put over the file.
  bool has_preset() const { return preset != kWhole; }

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

/// A row and a column that runs are needed for, and the numbers of these runs that are shown.
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

/// The sweep that trains the runs of these cells, one at least. Its runs do not depend on which others are wanted.
Grid grid_of(const RunDesign& design, const std::vector<WantedCell>& cells);

/// Whether one name comes before the other in a list: "thesis/4.9" before "thesis/4.10".
bool comes_before(const std::string& a, const std::string& b);

/// The names of all designs below a folder, "icml2022/4", sorted; numbers as numbers.
std::vector<std::string> design_names(const std::filesystem::path& folder);

/// The file of a table or a figure (`what`) by its name, by a path, or by the name of another printed one that comes
/// from the same runs ("icml2022/6"); `numbers` gives those of a file. Throws ConfigError with the nearest name.
std::filesystem::path find_design(const std::filesystem::path& folder, const std::string& name, const std::string& what,
                                  const std::function<std::vector<std::string>(const std::filesystem::path&)>& numbers);

}  // namespace settrain
