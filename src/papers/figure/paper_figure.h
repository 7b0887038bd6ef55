// A figure of a paper as its file says it (the runs that are trained for it, and the numbers of them that it shows),
// and its charts from runs' folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/config/config.h"
#include "src/config/schema.h"
#include "src/papers/design/run_design.h"
#include "src/plot/chart.h"

namespace settrain {

/// Where a number comes from.
enum class FigureSource {
  kResults,     // a run's results: those of the checkpoint that is best by `select`
  kFirstEpoch,  // the line of its first epoch in metrics.jsonl
  kLastEpoch,   // the line of its last one
};

/// The quantity along an axis, and how the axis looks.
struct FigureAxis {
  enum class Quantity { kMetric, kRows, kColumns, kEpochs, kSetSizes };
  enum class Scale { kUnsaid, kWords, kLinear, kLog };

  Quantity quantity = Quantity::kMetric;
  std::string label{};
  std::string metric{};  // of y always, of x where it is kMetric: "test/top5", "train/top5", "test/avg5"
  FigureSource source = FigureSource::kResults;
  bool is_error = false;                  // 1 minus the metric
  Scale scale = Scale::kUnsaid;           // labels of rows and columns are words then, and other axes linear
  std::optional<double> least{}, most{};  // ends of the axis
  std::optional<double> mark{};           // of y: where a dashed line crosses the panel, but with a preset
  std::optional<size_t> column{};         // kMetric: of this column's runs, whatever the point's own

  bool is_log() const { return scale == Scale::kLog; }
  bool is_of_labels() const { return quantity == Quantity::kRows || quantity == Quantity::kColumns; }
  /// Labels that are read as numbers.
  bool is_of_numbers() const { return is_of_labels() && (scale == Scale::kLinear || scale == Scale::kLog); }
};

/// One picture of a figure; those of one number stand side by side.
struct FigurePanel {
  std::string number, part, title;  // "5.4", "b"
  ChartKind kind = ChartKind::kLines;
  std::string select;                     // the validation metric whose best checkpoint counts
  std::vector<size_t> rows{}, columns{};  // places in the design's: the cells that it shows
  FigureAxis x{}, y{};
};

/// Figures that come from the same runs, or the Lorenz curve of the base config's data.
struct PaperFigure : RunDesign {
  bool is_lorenz = false;
  Settings let{};  // words that stand for a text in all that is shown: {data}
  std::vector<FigurePanel> panels{};

  /// The cells that some panel shows.
  std::vector<WantedCell> wanted_cells() const;

  /// The numbers of its figures, each once.
  std::vector<std::string> numbers() const;

  /// Leaves out all panels but those of a figure, "5.4", or one of them, "5.4b".
  void keep_only(const std::string& number);

  /// The name of a figure's files: "thesis-3.8", "thesis-3.8a" where nothing but that part of it is left,
  /// "thesis-3.8-smoke". Where `number` is empty it is that of the whole file.
  std::string chart_name(const std::string& number) const;

  /// For a picture's reader: "After Garcin, thesis, 2023. Preset smoke: one epoch."
  std::string origin() const;

  /// The metric of a cell that a panel's axis shows; empty where it shows none.
  std::string metric_of(const FigureAxis& axis, size_t row, size_t column) const;
};

/// Reads a figure's file, with its preset of that name over the rest; "paper" is the file without one. Throws
/// ConfigError with every offender at its file:line:column.
PaperFigure read_figure(const std::filesystem::path& file, const std::string& preset);

/// "thesis/3.6", or "thesis/3.8a" for a panel alone, or a file's name or path for all of its figures: the file, with
/// nothing but that in it. Throws ConfigError, with the nearest name where there is none.
PaperFigure find_figure(const std::filesystem::path& folder, const std::string& name, const std::string& preset);

struct FilledFigure {
  std::vector<Chart> charts{};         // one for each of the figure's numbers
  int64_t wanted = 0, found = 0;       // runs
  std::vector<std::string> remarks{};  // runs that are not in it, and why
};

/// Draws a figure's points from finished runs: means over seeds, with 95 % intervals (Student's t) from three seeds on;
/// in percent where the metric is a fraction. Without an interval: set sizes, where the sets of all seeds are counted
/// together, and the metric along x. `of_figure_only`: seeds that the figure does not name are left out. Remarks as of
/// find_cell_runs(), and runs without the number. Throws ConfigError where a cell's config is none.
FilledFigure collect_figure(const PaperFigure& figure, const config::Schema& schema,
                            const std::vector<std::filesystem::path>& runs, bool of_figure_only);

/// The figure's base config with its settings. Throws ConfigError.
config::Config lorenz_config(const PaperFigure& figure, const config::Schema& schema);

/// The Lorenz curve of the images of all splits together (lorenz_curve() of src/data_tools), which shows how unequally
/// images are spread over classes, in percent, beside that of classes of equal size.
Chart lorenz_chart(const PaperFigure& figure, const Dataset& dataset);

}  // namespace settrain
