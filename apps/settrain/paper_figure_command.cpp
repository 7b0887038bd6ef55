#include "apps/settrain/paper_figure_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/settrain/config_path.h"
#include "apps/settrain/design_list.h"
#include "apps/settrain/design_run.h"
#include "datasets/load_data.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/papers/design/cells.h"
#include "src/papers/design/needed_data.h"
#include "src/papers/design/run_design.h"
#include "src/papers/figure/paper_figure.h"
#include "src/plot/chart.h"
#include "src/plot/pictures.h"
#include "src/studies/compare/compared_run.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFigureFolder = "figures/";

fs::path figures_folder() {
  return config_folder() / "figures";
}

void draw(const std::vector<Chart>& charts, const fs::path& folder) {
  for (const fs::path& file : draw_charts(charts, folder)) std::cout << file.string() << '\n';
}

void draw(const FilledFigure& filled, const fs::path& folder) {
  for (const std::string& remark : filled.remarks) log::warning("[figure] " + remark);
  if (filled.found < filled.wanted) {
    log::warning(fmt::format("[figure] {} of {} runs are in the figure", filled.found, filled.wanted));
  }
  draw(filled.charts, folder);
}

DesignRows list_figures(const CommandLine& line, DesignList& list) {
  DesignRows rows{
      {"level-sets", "ICML 2022: figures 1, 4, 5, 6 (`settrain figure level-sets`)", "measured", "", "nothing", "yes"}};
  for (const std::string& name : design_names(figures_folder())) {
    PaperFigure figure = read_figure(figures_folder() / (name + ".yaml"), list.preset());
    if (figure.is_lorenz) {
      const config::Config config = lorenz_config(figure, experiment_schema(line.registries));
      rows.push_back(
          {name, figure.title, "0", "", needed_files(config).data, missing_files(config).empty() ? "yes" : "no"});
    }
    for (const std::string& number : figure.numbers()) {
      PaperFigure numbered = figure;
      numbered.keep_only(number);
      std::vector<std::string> row{name.substr(0, name.find('/') + 1) + number, figure.title};
      const std::vector<std::string> cost = list.cost_cells(numbered, numbered.wanted_cells());
      row.insert(row.end(), cost.begin(), cost.end());
      rows.push_back(std::move(row));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return comes_before(a[0], b[0]); });
  return rows;
}

int lorenz(const CommandLine& line, const DesignArguments& arguments, const PaperFigure& figure) {
  if (!arguments.runs.empty() || arguments.sweep.slurm) {
    throw ConfigError(figure.name + " shows data; there are no runs to collect or to submit");
  }
  const config::Config config = lorenz_config(figure, experiment_schema(line.registries));
  if (arguments.sweep.dry_run) {
    std::cout << fmt::format("{} shows the data of a config and trains nothing\nneeds: {}\n", figure.name,
                             needed_files(config).data);
    for (const std::string& sentence : missing_files(config)) std::cout << fmt::format("missing: {}\n", sentence);
    return kSuccess;
  }
  const Dataset dataset = load_data(line.registries.datasets, config).dataset;
  draw({lorenz_chart(figure, dataset)}, folder_of(figure, arguments, kFigureFolder));
  return kSuccess;
}

int collect(const CommandLine& line, const DesignArguments& arguments, const PaperFigure& figure) {
  const config::Schema schema = experiment_schema(line.registries);
  check_cells(figure, figure.wanted_cells(), schema);
  const FilledFigure filled = collect_figure(figure, schema, find_runs(arguments.runs), /*of_figure_only=*/false);
  if (filled.found == 0) {
    throw RunError(
        fmt::format("none of the runs has results for {}:\n  {}", figure.name, fmt::join(filled.remarks, "\n  ")));
  }
  draw(filled, folder_of(figure, arguments, kFigureFolder));
  return kSuccess;
}

int train(const CommandLine& line, const DesignArguments& arguments, const PaperFigure& figure) {
  const fs::path folder = folder_of(figure, arguments, kFigureFolder);
  const config::Schema schema = experiment_schema(line.registries);
  check_cells(figure, figure.wanted_cells(), schema);
  if (!arguments.sweep.dry_run) run_gnuplot(".", {"--version"});  // rather now than after all training
  return train_design(line, arguments, figure, figure.wanted_cells(), folder,
                      [&](const auto& runs, const auto& failures) {
                        FilledFigure filled = collect_figure(figure, schema, runs, /*of_figure_only=*/true);
                        filled.remarks.insert(filled.remarks.end(), failures.begin(), failures.end());
                        draw(filled, folder);
                      });
}

int figure(const CommandLine& line, const DesignArguments& arguments) {
  const PaperFigure figure = find_figure(figures_folder(), arguments.name, arguments.preset);
  if (figure.is_lorenz) return lorenz(line, arguments, figure);
  return arguments.runs.empty() ? train(line, arguments, figure) : collect(line, arguments, figure);
}

}  // namespace

void add_paper_figures(CLI::App& figures, CommandLine& line) {
  const auto arguments = std::make_shared<DesignArguments>();
  figures.add_option("name", arguments->name, "icml2022/2, thesis/5.5; or a figure's file");
  add_design_options(figures, line, *arguments, "figure", kFigureFolder);
  add_design_list(figures, line, "figure", {"figure", "of"},
                  [&line](DesignList& list) { return list_figures(line, list); });
  figures.callback([&figures, &line, arguments] {
    if (names_design(figures)) line.action = [&line, arguments] { return figure(line, *arguments); };
  });
}

}  // namespace settrain
