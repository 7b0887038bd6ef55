#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "src/core/mean_interval.h"
#include "src/core/text.h"
#include "src/papers/design/design_reader.h"
#include "src/papers/figure/paper_figure.h"

namespace settrain {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;
using Quantity = FigureAxis::Quantity;
using Scale = FigureAxis::Scale;
using Names = std::vector<std::string>;
constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.";

template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

class FigureReader : public DesignReader {
 public:
  FigureReader(config::Problems& problems, PaperFigure& figure) : DesignReader(problems, figure), figure_(figure) {}

 private:
  void read(const YamlNode& root) override {
    const YamlNode *panels = nullptr, *lorenz = nullptr, *of_runs = nullptr;
    Names known = kKeys;
    known.insert(known.end(), {"let", "panels", "lorenz", "presets"});
    each(root, known, [&](const std::string& key, const YamlNode& node) {
      read_key(key, node);
      if (key == "let") figure_.let = words(node);
      if (key == "panels") panels = &node;
      if (key == "lorenz") lorenz = &node;
      if (key == "panels" || key == "rows" || key == "columns" || key == "seeds") of_runs = &node;
    });
    if (figure_.base.empty()) problem(root, "expected the key base");
    figure_.is_lorenz = lorenz && chosen(*lorenz, kBooleans);
    if (figure_.is_lorenz) {
      if (of_runs) problem(*of_runs, "lorenz: true shows data: it has no runs, and no rows, columns, seeds or panels");
      return;
    }
    if (figure_.rows.each.empty() || !panels || !panels->is(Kind::kList)) {
      return problem(root, "expected the keys rows, panels, which is a list, and columns, if there are any");
    }
    if (figure_.columns.each.empty()) figure_.columns.each.push_back({.label = ""});
    for (const YamlNode& node : panels->values) figure_.panels.push_back(panel(node));
  }

  // Puts texts in the place of the words of `let` in all that is shown.
  void put_words(const YamlNode& root) {
    std::vector<std::string*> shown{&figure_.title};
    for (FigurePanel& panel : figure_.panels) {
      for (std::string* text : {&panel.title, &panel.x.label, &panel.y.label}) shown.push_back(text);
    }
    for (std::string* text : shown) {
      *text = with_words(*text, figure_.let);
      check_word(root, *text);
    }
  }

  // Where labels are to be numbers, they are different ones.
  void check_numbers() {
    for (const FigurePanel& panel : figure_.panels) {
      if (!panel.x.is_of_numbers()) continue;
      const bool is_rows = panel.x.quantity == Quantity::kRows;
      std::set<double> seen;
      for (const size_t place : is_rows ? panel.rows : panel.columns) {
        const DesignEntry& entry = (is_rows ? figure_.rows : figure_.columns).each[place];
        const std::string& label = entry.label;
        const double number = parse_number<double>(label).value_or(std::nan(""));
        const std::string where = fmt::format("panel {}{}: {}", panel.number, panel.part, in_quotes(label));
        if (!std::isfinite(number) || (panel.x.is_log() && number <= 0)) {
          problems_.add(
              entry.origin, "",
              fmt::format("{} is no number for an axis with the scale {}", where, panel.x.is_log() ? "log" : "linear"));
        } else if (!seen.insert(number).second) {
          problems_.add(entry.origin, "", where + " is the number of another label, too");
        }
      }
    }
  }

  void read_preset(const YamlNode& preset) override {
    Names known = kPresetKeys;
    known.push_back("let");
    each(preset, known, [&](const std::string& key, const YamlNode& node) {
      read_preset_key(key, node);
      if (key == "let") {
        for (const auto& [word, text] : words(node)) set(figure_.let, word, text);
      }
      if (key == "rows") read_axis_over(figure_.rows, node, "row", &FigurePanel::rows);
      if (key == "columns") read_axis_over(figure_.columns, node, "column", &FigurePanel::columns);
    });
  }

  void finish(const YamlNode& root) override {
    put_words(root);
    if (figure_.is_lorenz) return;
    if (figure_.panels.empty()) problem(root, "the preset keeps no panel");
    const std::vector<WantedCell> cells = figure_.wanted_cells();
    figure_.selects = all_selects(cells);
    check_numbers();
    check_words(root, cells);
  }

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
    // The number and the part become part of files' names.
    const std::string name = panel.number + panel.part;
    if (panel.number.empty() || name.find_first_not_of(kNameCharacters) != std::string::npos) {
      problem(node, "expected the key number, and part, if there is one, of letters, digits and points (\"5.4\")");
    }
    if (!numbers_.insert(name).second) problem(node, fmt::format("there are two panels {}", in_quotes(name)));
    if (!panel.select.starts_with("val/")) problem(node, "expected the key select (val/top5)");
    if (panel.y.metric.find('/') == std::string::npos || panel.y.quantity != Quantity::kMetric) {
      problem(node, "expected a metric on the axis y (test/top5)");
    }
    if ((panel.x.quantity == Quantity::kMetric) != (panel.x.metric.find('/') != std::string::npos)) {
      problem(node,
              "expected on the axis x either a metric (test/top5) or one of: of: rows, columns, epochs, set_sizes");
    }
    check_use(node, panel);
    panel.kind = kind                                      ? chosen(*kind, kKinds)
                 : panel.x.quantity == Quantity::kSetSizes ? ChartKind::kSteps
                 : panel.x.quantity == Quantity::kMetric   ? ChartKind::kPoints
                                                           : ChartKind::kLines;
    return panel;
  }

  // Keys without any effect are mistakes.
  void check_use(const YamlNode& node, const FigurePanel& panel) {
    const bool is_sets = panel.x.quantity == Quantity::kSetSizes, is_epochs = panel.x.quantity == Quantity::kEpochs;
    if (panel.x.column && panel.x.quantity != Quantity::kMetric)
      problem(node, "column chooses nothing where x is no metric");
    if ((is_sets || is_epochs) && (panel.y.source != FigureSource::kResults || panel.y.column)) {
      problem(node, "from and column choose nothing where x is of epochs or set_sizes");
    }
    const size_t sets = panel.y.metric.find("avg");
    if (is_sets && panel.y.metric.find('{') == std::string::npos &&
        (sets == std::string::npos || panel.y.metric.find("macro_") != std::string::npos)) {
      problem(node, "sizes are of average-K's sets: expected a metric such as test/avg5 or test/few_avg5");
    }
    if (panel.x.mark) problem(node, "mark is of y");
    for (const FigureAxis* axis : {&panel.x, &panel.y}) {
      if (axis->is_error &&
          (is_sets || axis->quantity != Quantity::kMetric || unit_of(axis->metric) != Unit::kFraction)) {
        problem(node, "error is 1 minus an accuracy");
      }
      if (axis->least && axis->most && *axis->least >= *axis->most) problem(node, "least is not below most");
      if (axis->is_log() && axis->least.value_or(axis->most.value_or(1)) <= 0) {
        problem(node, "an axis with the scale log cannot end at 0 or below");
      }
      if (axis->scale == Scale::kWords && !axis->is_of_labels()) problem(node, "the scale words is of labels");
    }
  }

  FigureAxis figure_axis(const YamlNode& node) {
    FigureAxis axis;
    each(node, {"of", "label", "scale", "metric", "from", "error", "column", "least", "most", "mark"},
         [&](const std::string& key, const YamlNode& given) {
           if (key == "of") axis.quantity = chosen(given, kOf);
           if (key == "label") axis.label = line(given);
           if (key == "scale") axis.scale = chosen(given, kScales);
           if (key == "metric") axis.metric = text(given);
           if (key == "from") axis.source = chosen(given, kSources);
           if (key == "error") axis.is_error = chosen(given, kBooleans);
           if (key == "column") axis.column = places(given, figure_.columns, "column").front();
           if (key == "least") axis.least = number(given);
           if (key == "most") axis.most = number(given);
           if (key == "mark") axis.mark = number(given);
         });
    if (axis.label.empty()) problem(node, "expected the key label");
    return axis;
  }

  std::vector<size_t> places(const YamlNode& node, const DesignAxis& axis, const std::string& what) {
    std::vector<size_t> all;
    for (const std::string& label : texts(node)) {
      const auto place = axis.find(label);
      if (!place) problem(node, fmt::format("there is no {} {}", what, in_quotes(label)));
      if (place && std::find(all.begin(), all.end(), *place) != all.end()) {
        problem(node, fmt::format("{} comes twice", in_quotes(label)));
      }
      all.push_back(place.value_or(0));
    }
    if (all.empty()) problem(node, fmt::format("expected labels of {}s", what));
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

  // Removes the panels of which no row or no column is left, and those whose axis shows a column that was removed.
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
  inline static const Words<Quantity> kOf{{"metric", Quantity::kMetric},
                                          {"rows", Quantity::kRows},
                                          {"columns", Quantity::kColumns},
                                          {"epochs", Quantity::kEpochs},
                                          {"set_sizes", Quantity::kSetSizes}};
  inline static const Words<Scale> kScales{{"words", Scale::kWords}, {"linear", Scale::kLinear}, {"log", Scale::kLog}};
  inline static const Words<FigureSource> kSources{{"results", FigureSource::kResults},
                                                   {"first_epoch", FigureSource::kFirstEpoch},
                                                   {"last_epoch", FigureSource::kLastEpoch}};

  PaperFigure& figure_;
  std::set<std::string> numbers_;  // of the panels, with their parts
};

}  // namespace

PaperFigure read_figure(const std::filesystem::path& file, const std::string& preset) {
  return read_design_file<FigureReader, PaperFigure>(file, preset, "figure");
}

}  // namespace settrain
