#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/paper_figure/paper_figure.h"
#include "src/table/design_reader.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;
using Of = FigureAxis::Of;
using Names = std::vector<std::string>;
template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

class FigureReader : public DesignReader {
 public:
  FigureReader(config::Problems& problems, const std::filesystem::path& folder, PaperFigure& figure)
      : DesignReader(problems, folder, figure), figure_(figure) {}

  void read(const YamlNode& root) {
    const YamlNode* panels = nullptr;
    Names known = kKeys;
    known.insert(known.end(), {"panels", "lorenz", "presets"});
    each(root, known, [&](const std::string& key, const YamlNode& node) {
      read_key(key, node);
      if (key == "panels") panels = &node;
      if (key == "lorenz") figure_.is_lorenz = chosen(node, kBooleans);
    });
    if (figure_.base.empty()) problem(root, "expected the key base");
    if (figure_.is_lorenz) return;
    if (figure_.rows.each.empty() || !panels || !panels->is(Kind::kList)) {
      return problem(root, "expected the keys rows, panels, which is a list, and columns, if there are any");
    }
    if (figure_.columns.each.empty()) figure_.columns.each.push_back({.label = "settrain"});
    for (const YamlNode& node : panels->values) figure_.panels.push_back(panel(node));
  }

  void read_over(const YamlNode& preset) {
    each(preset, kPresetKeys, [&](const std::string& key, const YamlNode& node) {
      read_preset_key(key, node);
      if (key == "rows") read_axis_over(figure_.rows, node, "row", &FigurePanel::rows);
      if (key == "columns") read_axis_over(figure_.columns, node, "column", &FigurePanel::columns);
    });
  }

  // Where labels are to be numbers.
  void check_numbers(const YamlNode& root) {
    for (const FigurePanel& panel : figure_.panels) {
      if (!panel.x.has_numbers) continue;
      const bool is_rows = panel.x.of == Of::kRows;
      for (const size_t place : is_rows ? panel.rows : panel.columns) {
        const std::string& label = (is_rows ? figure_.rows : figure_.columns).each[place].label;
        double number = 0;
        const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
        if (error != std::errc() || end != label.data() + label.size() || (panel.x.is_log && number <= 0)) {
          problem(root, fmt::format("{} is no number for an axis with the scale {}", config::in_quotes(label),
                                    panel.x.is_log ? "log" : "linear"));
        }
      }
    }
  }

 private:
  FigurePanel panel(const YamlNode& node) {
    FigurePanel panel;
    const YamlNode* kind = nullptr;
    panel.rows = all_of(figure_.rows);
    panel.columns = all_of(figure_.columns);
    each(node, {"number", "part", "title", "kind", "select", "rows", "columns", "x", "y"},
         [&](const std::string& key, const YamlNode& given) {
           if (key == "number") panel.number = text(given);
           if (key == "part") panel.part = text(given);
           if (key == "title") panel.title = line(given);
           if (key == "kind") kind = &given;
           if (key == "select") panel.select = text(given);
           if (key == "rows") panel.rows = places(given, figure_.rows, "row");
           if (key == "columns") panel.columns = places(given, figure_.columns, "column");
           if (key == "x") panel.x = figure_axis(given);
           if (key == "y") panel.y = figure_axis(given);
         });
    if (panel.number.empty()) problem(node, "expected the key number (\"5.4\")");
    if (!panel.select.starts_with("val/")) problem(node, "expected the key select (val/top5)");
    if (panel.y.metric.empty() || panel.y.of != Of::kMetric)
      problem(node, "expected a metric on the axis y (test/top5)");
    if ((panel.x.of == Of::kMetric) == panel.x.metric.empty()) {
      problem(node, "expected on the axis x either a metric or one of: of: rows, columns, epochs, set_sizes");
    }
    panel.kind = kind                          ? chosen(*kind, kKinds)
                 : panel.x.of == Of::kSetSizes ? ChartKind::kSteps
                 : panel.x.of == Of::kMetric   ? ChartKind::kPoints
                                               : ChartKind::kLines;
    return panel;
  }

  FigureAxis figure_axis(const YamlNode& node) {
    FigureAxis axis;
    each(node, {"of", "label", "scale", "metric", "from", "error", "column", "least", "most"},
         [&](const std::string& key, const YamlNode& given) {
           if (key == "of") axis.of = chosen(given, kOf);
           if (key == "label") axis.label = line(given);
           if (key == "scale") {
             const std::string scale =
                 chosen(given, Words<std::string>{{"words", "words"}, {"linear", "linear"}, {"log", "log"}});
             axis.has_numbers = scale != "words";
             axis.is_log = scale == "log";
           }
           if (key == "metric") axis.metric = text(given);
           if (key == "from") axis.source = chosen(given, kSources);
           if (key == "error") axis.is_error = chosen(given, kBooleans);
           if (key == "column") axis.column = places(given, figure_.columns, "column").front();
           if (key == "least") axis.least = number(given);
           if (key == "most") axis.most = number(given);
         });
    if (axis.label.empty()) problem(node, "expected the key label");
    return axis;
  }

  std::vector<size_t> places(const YamlNode& node, const DesignAxis& axis, const std::string& what) {
    std::vector<size_t> all;
    for (const std::string& label : texts(node)) {
      const auto place = axis.find(label);
      if (!place) problem(node, fmt::format("there is no {} {}", what, config::in_quotes(label)));
      all.push_back(place.value_or(0));
    }
    return all.empty() ? std::vector<size_t>{0} : all;
  }

  static std::vector<size_t> all_of(const DesignAxis& axis) {
    std::vector<size_t> all(axis.each.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  // A preset's own axis, which every panel then has all of, or those entries that it keeps.
  void read_axis_over(DesignAxis& entries, const YamlNode& node, const std::string& what,
                      std::vector<size_t> FigurePanel::*member) {
    if (!node.is(Kind::kMap)) return keep_places(keep(entries, node, what), member);
    for (const FigurePanel& panel : figure_.panels) {
      if (panel.*member != all_of(entries)) {
        return problem(node,
                       fmt::format("a preset can have {}s of its own only where no panel names some of them", what));
      }
    }
    entries = axis(node);
    for (FigurePanel& panel : figure_.panels) panel.*member = all_of(entries);
  }

  // A panel without a row or a column that is left goes, and one whose axis shows a column that went.
  void keep_places(const std::vector<std::optional<size_t>>& places, std::vector<size_t> FigurePanel::*member) {
    for (FigurePanel& panel : figure_.panels) {
      std::vector<size_t> left;
      for (const size_t place : panel.*member) {
        if (places[place]) left.push_back(*places[place]);
      }
      panel.*member = std::move(left);
      if (member != &FigurePanel::columns) continue;
      for (FigureAxis* axis : {&panel.x, &panel.y}) {
        if (!axis->column) continue;
        axis->column = places[*axis->column];
        if (!axis->column) panel.columns.clear();
      }
    }
    std::erase_if(figure_.panels, [](const FigurePanel& panel) { return panel.rows.empty() || panel.columns.empty(); });
  }

  inline static const Words<bool> kBooleans{{"true", true}, {"false", false}};
  inline static const Words<ChartKind> kKinds{
      {"lines", ChartKind::kLines}, {"points", ChartKind::kPoints}, {"steps", ChartKind::kSteps}};
  inline static const Words<Of> kOf{{"metric", Of::kMetric},
                                    {"rows", Of::kRows},
                                    {"columns", Of::kColumns},
                                    {"epochs", Of::kEpochs},
                                    {"set_sizes", Of::kSetSizes}};
  inline static const Words<FigureSource> kSources{{"results", FigureSource::kResults},
                                                   {"first_epoch", FigureSource::kFirstEpoch},
                                                   {"last_epoch", FigureSource::kLastEpoch}};

  PaperFigure& figure_;
};

}  // namespace

PaperFigure read_figure(const std::filesystem::path& file, const std::string& preset) {
  PaperFigure figure;
  const YamlNode root = parse_design(file, preset, "figure", figure);
  const std::filesystem::path folder = file.parent_path();
  config::Problems problems;
  FigureReader reader(problems, folder, figure);
  reader.read(root);
  problems.throw_if_any();
  if (preset != "paper") {
    if (const YamlNode* over = reader.find_preset(root, preset)) reader.read_over(*over);
  }
  problems.throw_if_any();
  if (!figure.is_lorenz) {
    if (figure.panels.empty()) reader.problem(root, "the preset keeps no panel");
    reader.check_numbers(root);
    reader.check_words(root, figure.wanted_cells());
  }
  problems.throw_if_any();
  return figure;
}

}  // namespace settrain
