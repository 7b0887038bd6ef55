#include <fmt/format.h>

#include <algorithm>

#include "src/papers/design/design_reader.h"
#include "src/papers/table/table.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;
using Names = std::vector<std::string>;

Names joined(Names first, const Names& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class TableReader : public DesignReader {
 public:
  TableReader(config::Problems& problems, Table& table) : DesignReader(problems, table), table_(table) {}

 private:
  void read(const YamlNode& root) override {
    const YamlNode* parts = nullptr;
    each(root, joined(kKeys, {"tested", "against", "parts", "presets", "measure"}),
         [&](const std::string& key, const YamlNode& node) {
           read_key(key, node);
           if (key == "tested") table_.tested = line(node);
           if (key == "against") table_.against = line(node);
           if (key == "measure") read_measure(node);
           if (key == "parts") parts = &node;
         });
    if (table_.rows.each.empty() || table_.columns.each.empty() || !parts) {
      return problem(root, "expected the keys rows, columns and parts");
    }
    if (table_.base.empty() == !table_.measure) problem(root, "expected one of the keys base and measure");
    if (!table_.against.empty() && !table_.columns.find(table_.against)) {
      problem(root, fmt::format("against: there is no column {}", in_quotes(table_.against)));
    }
    if (!parts->is(Kind::kList)) return problem(*parts, "expected a list of printed tables");
    for (const YamlNode& node : parts->values) table_.parts.push_back(part(node));
  }

  void read_preset(const YamlNode& preset) override {
    each(preset, joined(kPresetKeys, {"measure"}), [&](const std::string& key, const YamlNode& node) {
      read_preset_key(key, node);
      if (key == "measure") read_measure(node);
      if (key == "rows") keep_rows(keep(table_.rows, node, "row"));
      if (key == "columns") keep_columns(keep(table_.columns, node, "column"));
    });
  }

  void finish(const YamlNode& root) override {
    // What no row is left of is no part of the preset.
    std::erase_if(table_.parts, [](const TablePart& part) { return part.rows.empty(); });
    if (table_.parts.empty()) problem(root, "the preset keeps no row of any printed table");
    if (!table_.against.empty() && !table_.columns.find(table_.against)) table_.against.clear();
    const std::vector<WantedCell> cells = table_.wanted_cells();
    table_.selects = all_selects(cells);
    if (cells.empty()) problem(root, "no cell is left: every text of `printed` is -");
    check_words(root, cells);
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
      problem(node, "what: expected one of " + join(known, ", "));
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
    if (!table_.measure && (part.metric.find_first_of("/{") == std::string::npos || part.select.empty())) {
      problem(node, "expected the keys metric (test/top5) and select (val/top5, or last)");
    }
    if (printed) {
      read_printed(*printed, part);
    } else {
      for (size_t row = 0; row < table_.rows.each.size(); ++row) part.rows.push_back(row);
    }
    return part;
  }

  void read_printed(const YamlNode& node, TablePart& part) {
    each(node, {}, [&](const std::string& label, const YamlNode& given) {
      const auto row = table_.rows.find(label);
      if (!row) return problem(given, fmt::format("there is no row {}", in_quotes(label)));
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
                              in_quotes(cells[i])));
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

  void keep_rows(const std::vector<std::optional<size_t>>& places) {
    for (TablePart& part : table_.parts) {
      TablePart made = part;
      made.rows.clear();
      made.printed.clear();
      for (size_t i = 0; i < part.rows.size(); ++i) {
        const auto place = places[part.rows[i]];
        if (!place) continue;
        made.rows.push_back(*place);
        if (!part.printed.empty()) made.printed.push_back(part.printed[i]);
      }
      part = std::move(made);
    }
  }

  void keep_columns(const std::vector<std::optional<size_t>>& places) {
    for (TablePart& part : table_.parts) {
      for (std::vector<PrintedCell>& row : part.printed) {
        std::vector<PrintedCell> left;
        for (size_t i = 0; i < row.size(); ++i) {
          if (places[i]) left.push_back(std::move(row[i]));
        }
        row = std::move(left);
      }
    }
  }

  inline static const std::vector<std::pair<std::string, PrintedSpread>> kSpreads{
      {"none", PrintedSpread::kNone},
      {"interval95", PrintedSpread::kInterval95},
      {"deviation", PrintedSpread::kDeviation}};
  inline static const std::vector<std::pair<std::string, PrintedUnit>> kUnits{{"percent", PrintedUnit::kPercent},
                                                                              {"fraction", PrintedUnit::kFraction},
                                                                              {"seconds", PrintedUnit::kSeconds},
                                                                              {"classes", PrintedUnit::kClasses}};

  Table& table_;
};

}  // namespace

Table read_table(const std::filesystem::path& file, const std::string& preset) {
  return read_design_file<TableReader, Table>(file, preset, "table");
}

}  // namespace settrain
