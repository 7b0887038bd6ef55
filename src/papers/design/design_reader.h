// The part that reading a table's file and reading a figure's have in common: the runs, and presets that go over them.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/papers/design/run_design.h"
#include "src/studies/sweep/tree_reader.h"

namespace settrain {

/// Walks the tree of a design's file; what is wrong is gathered, and the walk goes on.
class DesignReader : public TreeReader {
 public:
  DesignReader(config::Problems& problems, RunDesign& design)
      : TreeReader(problems), folder_(design.file.parent_path()), design_(design) {}
  virtual ~DesignReader() = default;

  /// Reads the file, puts the preset that the design is read with over it, and finishes it. Throws ConfigError with
  /// every offender of the first of these that has some.
  void read_design(const YamlNode& root);

 protected:
  /// Reads the file without its presets.
  virtual void read(const YamlNode& root) = 0;

  /// Reads a preset over it.
  virtual void read_preset(const YamlNode& preset) = 0;

  /// Checks and derives the rest, once both are read.
  virtual void finish(const YamlNode& root) = 0;

  /// Adds a problem for each {word} in the cells' settings and metrics that is none of `let`.
  void check_words(const YamlNode& root, const std::vector<WantedCell>& cells);

  /// The keys of a file that say what runs there are, and those of a preset.
  static inline const std::vector<std::string> kKeys{"paper", "title", "base", "set", "seeds", "rows", "columns"};
  static inline const std::vector<std::string> kPresetKeys{"base", "set", "seeds", "rows", "columns", "says"};

  /// Reads one of kKeys; others are left.
  void read_key(const std::string& key, const YamlNode& node);

  /// Reads one of kPresetKeys but for rows and columns, which keep() takes; others are left.
  void read_preset_key(const std::string& key, const YamlNode& node);

  /// Keeps of an axis, called `what`, the entries that a preset names, in the axis' order; those that the preset spells
  /// out take the place of those of their labels. Gives the new place of every old entry, or nothing for those that are
  /// not kept.
  std::vector<std::optional<size_t>> keep(DesignAxis& axis, const YamlNode& node, const std::string& what);

  DesignAxis axis(const YamlNode& node);

  /// A map of words to texts.
  Settings words(const YamlNode& node);

  /// A problem where a {word} is left in the text.
  void check_word(const YamlNode& root, const std::string& text);

  /// A text on one line, whatever format it is shown in.
  std::string line(const YamlNode& node);

  /// One of several words.
  template <class Value>
  Value chosen(const YamlNode& node, const std::vector<std::pair<std::string, Value>>& choices) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (node.text == name) return value;
      names.push_back(name);
    }
    problem(node, "expected one of " + join(names, ", "));
    return choices.front().second;
  }

 private:
  Settings raw_settings(const YamlNode& node);
  DesignEntry entry(const YamlNode& node);

  const std::filesystem::path folder_;  // what `base` is relative to
  RunDesign& design_;
  std::set<std::string> said_;
};

/// The tree of a file that is called by `what` ("table"), and its design's file, name and preset set in `design`.
/// Throws ConfigError.
config::YamlNode parse_design(const std::filesystem::path& file, const std::string& preset, const std::string& what,
                              RunDesign& design);

/// Reads a file that is called by `what`, with the preset, by `Reader`. Throws ConfigError.
template <class Reader, class Design>
Design read_design_file(const std::filesystem::path& file, const std::string& preset, const std::string& what) {
  Design design;
  const config::YamlNode root = parse_design(file, preset, what, design);
  config::Problems problems;
  Reader(problems, design).read_design(root);
  return design;
}

}  // namespace settrain
