#include "src/papers/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/papers/design/design_reader.h"
#include "src/papers/design/run_design.h"

namespace settrain {
namespace {

// Takes a number from the front of `rest`, and the blanks behind it.
std::optional<double> take_number(std::string_view& rest) {
  const std::string text(rest);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - text.c_str()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return value;
}

bool take(std::string_view& rest, std::string_view word) {
  if (!rest.starts_with(word)) return false;
  rest.remove_prefix(word.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return true;
}

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
    // A part without any row left is no part of the preset.
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
    const std::vector<std::string> known{TableMeasure::kForward, TableMeasure::kBackward, TableMeasure::kStability};
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

std::optional<PrintedCell> parse_printed(const std::string& text) {
  PrintedCell cell{text};
  // Words of stability tables stand for no number.
  for (const char* word : {"-", "NA", "stable", "overflow"}) {
    if (text == word) return cell;
  }
  std::string_view rest = text;
  if (!(cell.value = take_number(rest))) return std::nullopt;
  if (take(rest, "±") && !(cell.spread = take_number(rest))) return std::nullopt;
  if (take(rest, "(")) {
    do {
      const auto group = take_number(rest);
      if (!group) return std::nullopt;
      cell.groups.push_back(*group);
    } while (take(rest, "/"));
    if (!take(rest, ")")) return std::nullopt;
  }
  return rest.empty() ? std::optional(cell) : std::nullopt;
}

Table read_table(const std::filesystem::path& file, const std::string& preset) {
  return read_design_file<TableReader, Table>(file, preset, "table");
}

bool TablePart::has_row(size_t row) const {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

const PrintedCell& TablePart::printed_at(size_t row, size_t column) const {
  static const PrintedCell kNothing{};
  const auto found = std::find(rows.begin(), rows.end(), row);
  if (printed.empty() || found == rows.end()) return kNothing;
  return printed[static_cast<size_t>(found - rows.begin())][column];
}

std::vector<WantedCell> Table::wanted_cells() const {
  std::vector<WantedCell> cells;
  for (size_t row = 0; row < rows.each.size(); ++row) {
    for (size_t column = 0; column < columns.each.size(); ++column) {
      WantedCell cell{row, column};
      bool is_wanted = false;
      for (const TablePart& part : parts) {
        if (!part.has_row(row)) continue;
        is_wanted = is_wanted || part.printed.empty() || !part.printed_at(row, column).is_absent();
        add_once(cell.selects, substitute(part.select, row, column));
        add_once(cell.metrics, substitute(part.metric, row, column));
        for (const std::string& group : part.groups) add_once(cell.metrics, substitute(group, row, column));
      }
      if (is_wanted) cells.push_back(std::move(cell));
    }
  }
  return cells;
}

std::filesystem::path find_table(const std::filesystem::path& folder, const std::string& name) {
  return find_design(folder, name, "table", [](const std::filesystem::path& file) {
    std::vector<std::string> numbers;
    for (const TablePart& part : read_table(file, "paper").parts) numbers.push_back(part.number);
    return numbers;
  });
}

}  // namespace settrain
