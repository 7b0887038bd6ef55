#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/sweep/tree_reader.h"
#include "src/table/table.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;

// Walks the tree of a table's file; what is wrong is gathered, and the walk goes on.
class TableReader : public TreeReader {
 public:
  TableReader(config::Problems& problems, const std::filesystem::path& folder, Table& table)
      : TreeReader(problems), folder_(folder), table_(table) {}

  void read(const YamlNode& root) {
    const YamlNode* parts = nullptr;
    each(root,
         {"paper", "title", "tested", "against", "base", "set", "seeds", "rows", "columns", "parts", "presets",
          "measure"},
         [&](const std::string& key, const YamlNode& node) {
           if (key == "paper") table_.paper = line(node);
           if (key == "title") table_.title = line(node);
           if (key == "tested") table_.tested = line(node);
           if (key == "against") table_.against = line(node);
           if (key == "base") table_.base = folder_ / text(node);
           if (key == "set") table_.common = raw_settings(node);
           if (key == "seeds") table_.seeds = values(node);
           if (key == "rows") table_.rows = axis(node);
           if (key == "columns") table_.columns = axis(node);
           if (key == "measure") read_measure(node);
           if (key == "parts") parts = &node;
         });
    if (table_.rows.each.empty() || table_.columns.each.empty() || !parts) {
      return problem(root, "expected the keys rows, columns and parts");
    }
    if (table_.base.empty() == !table_.measure) problem(root, "expected one of the keys base and measure");
    if (!table_.against.empty() && !table_.columns.find(table_.against)) {
      problem(root, fmt::format("against: there is no column {}", config::in_quotes(table_.against)));
    }
    if (!parts->is(Kind::kList)) return problem(*parts, "expected a list of printed tables");
    for (const YamlNode& node : parts->values) table_.parts.push_back(part(node));
  }

  // A preset, put over what the file itself says.
  void read_over(const YamlNode& preset) {
    each(preset, {"base", "set", "seeds", "rows", "columns", "measure", "says"},
         [&](const std::string& key, const YamlNode& node) {
           if (key == "base") table_.base = folder_ / text(node);
           if (key == "set") table_.over = raw_settings(node);
           if (key == "seeds") table_.seeds = values(node);
           if (key == "measure") read_measure(node);
           if (key == "says") table_.says = line(node);
           if (key == "rows") keep(table_.rows, node, true);
           if (key == "columns") keep(table_.columns, node, false);
         });
  }

  // A table of nothing but cells that the paper does not have.
  void check_cells(const YamlNode& root) {
    for (size_t row = 0; row < table_.rows.each.size(); ++row) {
      for (size_t column = 0; column < table_.columns.each.size(); ++column) {
        if (table_.is_wanted(row, column)) return;
      }
    }
    problem(root, "no cell is left: every text of `printed` is -");
  }

  // Every {word} has to be one of `let`.
  void check_words(const YamlNode& root) {
    for (size_t row = 0; row < table_.rows.each.size(); ++row) {
      for (size_t column = 0; column < table_.columns.each.size(); ++column) {
        for (const auto& [key, value] : table_.settings(row, column)) check_word(root, key + ": " + value);
        for (const TablePart& part : table_.parts) {
          check_word(root, table_.substitute(part.metric, row, column));
          check_word(root, table_.substitute(part.select, row, column));
          for (const std::string& group : part.groups) check_word(root, table_.substitute(group, row, column));
        }
      }
    }
  }

 private:
  // What is shown stands on one line, whatever format it is shown in.
  std::string line(const YamlNode& node) {
    std::string all = text(node);
    while (all.ends_with('\n')) all.pop_back();
    std::replace(all.begin(), all.end(), '\n', ' ');
    return all;
  }

  void check_word(const YamlNode& root, const std::string& text) {
    const size_t open = text.find('{');
    if (open == std::string::npos || !said_.insert(text).second) return;
    problem(root, fmt::format("{}: no `let` of the row or the column has this word", text));
  }

  // Values with {words} become what the words stand for: quotes, which YAML asks for, are no part of them.
  Settings raw_settings(const YamlNode& node) {
    Settings all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) {
      refuse_reserved(key, given);
      const bool has_word = given.quoted && given.text.find('{') != std::string::npos;
      all.emplace_back(key, has_word ? given.text : value(given));
    });
    return all;
  }

  Settings words(const YamlNode& node) {
    Settings all;
    each(node, {}, [&](const std::string& key, const YamlNode& given) { all.emplace_back(key, text(given)); });
    return all;
  }

  TableEntry entry(const YamlNode& node) {
    TableEntry entry;
    each(node, {"label", "set", "let"}, [&](const std::string& key, const YamlNode& given) {
      if (key == "label") entry.label = line(given);
      if (key == "set") entry.set = raw_settings(given);
      if (key == "let") entry.let = words(given);
    });
    if (entry.label.empty()) problem(node, "expected the key label");
    return entry;
  }

  TableAxis axis(const YamlNode& node) {
    TableAxis axis;
    each(node, {"name", "each"}, [&](const std::string& key, const YamlNode& given) {
      if (key == "name") axis.name = line(given);
      if (key != "each") return;
      if (!given.is(Kind::kList) || given.values.empty()) return problem(given, "expected a list of {label, set, let}");
      for (const YamlNode& element : given.values) {
        TableEntry made = entry(element);
        if (axis.find(made.label)) problem(element, fmt::format("{} comes twice", config::in_quotes(made.label)));
        axis.each.push_back(std::move(made));
      }
    });
    return axis;
  }

  void read_measure(const YamlNode& node) {
    TableMeasure measure = table_.measure.value_or(TableMeasure{});
    each(node, {"what", "k", "batch", "runs"}, [&](const std::string& key, const YamlNode& given) {
      if (key == "what") measure.what = text(given);
      if (key == "k") measure.k = integer(given, 1, 1000);
      if (key == "batch") measure.batch = integer(given, 1, 1'000'000);
      if (key == "runs") measure.runs = integer(given, 1, 1'000'000);
    });
    const std::vector<std::string> known{"smoothed_forward", "smoothed_backward", "smoothed_stability"};
    if (std::find(known.begin(), known.end(), measure.what) == known.end()) {
      problem(node, "what: expected one of " + config::join(known, ", "));
    }
    table_.measure = measure;
  }

  TablePart part(const YamlNode& node) {
    TablePart part;
    const YamlNode* printed = nullptr;
    each(node, {"number", "title", "metric", "select", "spread", "groups", "unit", "printed", "notes"},
         [&](const std::string& key, const YamlNode& given) {
           if (key == "number") part.number = text(given);
           if (key == "title") part.title = line(given);
           if (key == "metric") part.metric = text(given);
           if (key == "select") part.select = text(given);
           if (key == "groups") part.groups = texts(given);
           if (key == "spread") part.spread = chosen(given, kSpreads);
           if (key == "unit") part.unit = chosen(given, kUnits);
           if (key == "printed") printed = &given;
           if (key == "notes") part.notes = notes(given);
         });
    if (!table_.measure && (part.metric.find_first_of("/{") == std::string::npos || !part.select.starts_with("val/"))) {
      problem(node, "expected the keys metric (test/top5) and select (val/top5)");
    }
    if (printed) {
      read_printed(*printed, part);
    } else {
      for (size_t row = 0; row < table_.rows.each.size(); ++row) part.rows.push_back(row);
    }
    return part;
  }

  template <class Value>
  Value chosen(const YamlNode& node, const std::vector<std::pair<std::string, Value>>& choices) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (node.text == name) return value;
      names.push_back(name);
    }
    problem(node, "expected one of " + config::join(names, ", "));
    return choices.front().second;
  }

  void read_printed(const YamlNode& node, TablePart& part) {
    each(node, {}, [&](const std::string& label, const YamlNode& given) {
      const auto row = table_.rows.find(label);
      if (!row) return problem(given, fmt::format("there is no row {}", config::in_quotes(label)));
      const std::vector<std::string> cells = texts(given);
      if (cells.size() != table_.columns.each.size()) {
        return problem(given, fmt::format("expected a cell for each of the {} columns, and got {}",
                                          table_.columns.each.size(), cells.size()));
      }
      part.rows.push_back(*row);
      part.printed.emplace_back();
      for (size_t i = 0; i < cells.size(); ++i) {
        const auto cell = parse_printed(cells[i]);
        if (!cell || (!cell->groups.empty() && cell->groups.size() != part.groups.size())) {
          problem(given,
                  fmt::format("{}: expected a number, NUMBER±SPREAD, either with a number for each of `groups` in "
                              "parentheses, NA, or - for no cell",
                              config::in_quotes(cells[i])));
        }
        part.printed.back().push_back(cell.value_or(PrintedCell{}));
      }
    });
  }

  std::vector<TableNote> notes(const YamlNode& node) {
    std::vector<TableNote> all;
    if (!node.is(Kind::kList)) problem(node, "expected a list of {row, column, text}");
    for (const YamlNode& element : node.values) {
      TableNote note;
      each(element, {"row", "column", "text"}, [&](const std::string& key, const YamlNode& given) {
        if (key == "row") note.row = text(given);
        if (key == "column") note.column = text(given);
        if (key == "text") note.text = line(given);
      });
      if ((!note.row.empty() && !table_.rows.find(note.row)) ||
          (!note.column.empty() && !table_.columns.find(note.column))) {
        problem(element, "there is no such row or column");
      }
      all.push_back(std::move(note));
    }
    return all;
  }

  // Keeps of an axis what a preset names, in its own order; entries that the preset spells out take the place of those
  // of their labels.
  void keep(TableAxis& axis, const YamlNode& node, bool is_rows) {
    if (!node.is(Kind::kList) || node.values.empty()) return problem(node, "expected a list of labels or entries");
    std::vector<bool> kept(axis.each.size(), false);
    for (const YamlNode& element : node.values) {
      const TableEntry given = element.is(Kind::kMap) ? entry(element) : TableEntry{text(element)};
      const auto at = axis.find(given.label);
      if (!at) {
        problem(element, fmt::format("there is no {} {}", is_rows ? "row" : "column", config::in_quotes(given.label)));
        continue;
      }
      kept[*at] = true;
      if (element.is(Kind::kMap)) axis.each[*at] = given;
    }
    std::vector<size_t> places(axis.each.size());  // old to new
    size_t next = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      places[i] = next;
      if (!kept[i]) continue;
      if (next != i) axis.each[next] = std::move(axis.each[i]);
      ++next;
    }
    axis.each.resize(next);
    for (TablePart& part : table_.parts) is_rows ? keep_rows(part, kept, places) : keep_columns(part, kept);
  }

  static void keep_rows(TablePart& part, const std::vector<bool>& kept, const std::vector<size_t>& places) {
    TablePart made = part;
    made.rows.clear();
    made.printed.clear();
    for (size_t i = 0; i < part.rows.size(); ++i) {
      if (!kept[part.rows[i]]) continue;
      made.rows.push_back(places[part.rows[i]]);
      if (!part.printed.empty()) made.printed.push_back(part.printed[i]);
    }
    part = std::move(made);
  }

  static void keep_columns(TablePart& part, const std::vector<bool>& kept) {
    for (std::vector<PrintedCell>& row : part.printed) {
      size_t next = 0;
      for (size_t i = 0; i < row.size(); ++i) {
        if (!kept[i]) continue;
        if (next != i) row[next] = std::move(row[i]);
        ++next;
      }
      row.resize(next);
    }
  }

  inline static const std::vector<std::pair<std::string, PrintedSpread>> kSpreads{
      {"none", PrintedSpread::kNone},
      {"interval95", PrintedSpread::kInterval95},
      {"deviation", PrintedSpread::kDeviation}};
  inline static const std::vector<std::pair<std::string, PrintedUnit>> kUnits{
      {"percent", PrintedUnit::kPercent}, {"fraction", PrintedUnit::kFraction}, {"seconds", PrintedUnit::kSeconds}};

  const std::filesystem::path& folder_;
  Table& table_;
  std::set<std::string> said_;
};

}  // namespace

Table read_table(const std::filesystem::path& file, const std::string& preset) {
  config::Problems problems;
  const auto root = config::parse_yaml(read_yaml_text(file, "table"), {file.string(), 0, true}, problems);
  problems.throw_if_any();
  Table table;
  table.file = file;
  table.name = (file.parent_path().filename() / file.stem()).string();
  table.preset = preset;
  const std::filesystem::path folder = file.parent_path();
  TableReader reader(problems, folder, table);
  reader.read(*root);
  problems.throw_if_any();
  if (preset != "paper") {
    if (const YamlNode* over = reader.find_preset(*root, preset)) reader.read_over(*over);
  }
  problems.throw_if_any();
  // What no row is left of is no part of the preset.
  std::erase_if(table.parts, [](const TablePart& part) { return part.rows.empty(); });
  if (table.parts.empty()) reader.problem(*root, "the preset keeps no row of any printed table");
  if (!table.against.empty() && !table.columns.find(table.against)) table.against.clear();
  reader.check_cells(*root);
  reader.check_words(*root);
  problems.throw_if_any();
  return table;
}

}  // namespace settrain
