#include "src/papers/figure/paper_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "src/core/error.h"
#include "src/papers/design/run_design.h"

namespace settrain {

std::string PaperFigure::metric_of(const FigureAxis& axis, size_t row, size_t column) const {
  return substitute(axis.metric, row, axis.column.value_or(column));
}

std::vector<WantedCell> PaperFigure::wanted_cells() const {
  std::vector<WantedCell> cells;
  const auto cell_at = [&](size_t row, size_t column) -> WantedCell& {
    const auto known = std::find_if(cells.begin(), cells.end(),
                                    [&](const WantedCell& cell) { return cell.row == row && cell.column == column; });
    return known == cells.end() ? cells.emplace_back(WantedCell{row, column}) : *known;
  };
  for (const FigurePanel& panel : panels) {
    for (const size_t row : panel.rows) {
      for (const size_t column : panel.columns) {
        for (const FigureAxis* axis : {&panel.x, &panel.y}) {
          const std::string metric = metric_of(*axis, row, column);
          if (metric.empty()) continue;
          WantedCell& cell = cell_at(row, axis->column.value_or(column));
          const bool is_logged =
              axis->source != FigureSource::kResults || panel.x.quantity == FigureAxis::Quantity::kEpochs;
          const bool is_sets = panel.x.quantity == FigureAxis::Quantity::kSetSizes;
          add_once(is_sets ? cell.set_sizes : is_logged ? cell.logged : cell.metrics, metric);
          add_once(cell.selects, substitute(panel.select, row, column));
        }
      }
    }
  }
  return cells;
}

std::vector<std::string> PaperFigure::numbers() const {
  std::vector<std::string> all;
  for (const FigurePanel& panel : panels) add_once(all, panel.number);
  return all;
}

void PaperFigure::keep_only(const std::string& number) {
  std::erase_if(
      panels, [&](const FigurePanel& panel) { return panel.number != number && panel.number + panel.part != number; });
}

std::string PaperFigure::chart_name(const std::string& number) const {
  std::vector<std::string> parts;
  for (const FigurePanel& panel : panels) {
    if (panel.number == number) add_once(parts, panel.part);
  }
  const std::string paper_name = name.substr(0, name.find('/'));
  std::string made = number.empty() ? name : paper_name + "-" + number + (parts.size() == 1 ? parts.front() : "");
  if (has_preset()) made += "-" + preset;
  for (char& c : made) {
    if (c == '/') c = '-';
    const bool may_follow = (c == '-' || c == '.') && &c != made.data();
    if (!std::isalnum(static_cast<unsigned char>(c)) && !may_follow) c = '_';
  }
  return made;
}

std::string PaperFigure::origin() const {
  std::vector<std::string> sentences;
  if (!paper.empty()) sentences.push_back(fmt::format("After {}.", paper));
  if (has_preset()) sentences.push_back(fmt::format("Preset {}{}", preset, says.empty() ? "." : ": " + says));
  return fmt::format("{}", fmt::join(sentences, " "));
}

PaperFigure find_figure(const std::filesystem::path& folder, const std::string& name, const std::string& preset) {
  const std::filesystem::path file = find_design(folder, name, "figure", [](const std::filesystem::path& candidate) {
    const PaperFigure figure = read_figure(candidate, "paper");
    std::vector<std::string> numbers = figure.numbers();
    for (const FigurePanel& panel : figure.panels) add_once(numbers, panel.number + panel.part);
    return numbers;
  });
  PaperFigure figure = read_figure(file, preset);
  if (figure.name != name && !name.ends_with(".yaml")) {
    const std::string number = name.substr(name.find('/') + 1);
    figure.keep_only(number);
    if (figure.panels.empty()) {
      throw ConfigError(fmt::format("'{}': the preset '{}' has no figure {}", file.string(), preset, number));
    }
  }
  return figure;
}

}  // namespace settrain
