#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "apps/settrain/command_line.h"
#include "apps/settrain/design_cost.h"
#include "apps/settrain/design_run.h"
#include "datasets/load_data.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/papers/design/needed_data.h"
#include "src/papers/design/run_design.h"
#include "src/papers/figure/paper_figure.h"
#include "src/papers/level_sets/level_sets.h"
#include "src/plot/chart.h"
#include "src/plot/pictures.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFigureFolder = "figures/";

fs::path figures_folder() {
  return config_folder() / "figures";
}

void print_files(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) std::cout << file.string() << '\n';
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
      rows.push_back(
          list.row({name.substr(0, name.find('/') + 1) + number, figure.title}, numbered, numbered.wanted_cells()));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return comes_before(a[0], b[0]); });
  return rows;
}

int draw_lorenz(const CommandLine& line, const DesignArguments& arguments, const PaperFigure& figure) {
  if (arguments.collects() || arguments.sweep.slurm) {
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
  print_files(draw_charts({lorenz_chart(figure, dataset)}, folder_of(figure, arguments, kFigureFolder)));
  return kSuccess;
}

int make_paper_figure(const CommandLine& line, const DesignArguments& arguments) {
  const PaperFigure figure = find_figure(figures_folder(), arguments.name, arguments.preset);
  if (figure.is_lorenz) return draw_lorenz(line, arguments, figure);
  // Throws where gnuplot is missing now, and not after all training.
  if (!arguments.collects() && !arguments.sweep.dry_run) run_gnuplot(".", {"--version"});
  const fs::path folder = folder_of(figure, arguments, kFigureFolder);
  const auto show = [&](const auto& runs, const auto& failures) {
    FilledFigure filled =
        collect_figure(figure, experiment_schema(line.registries), runs, /*of_figure_only=*/!arguments.collects());
    if (arguments.collects() && filled.found == 0) {
      throw RunError(
          fmt::format("none of the runs has results for {}:\n  {}", figure.name, fmt::join(filled.remarks, "\n  ")));
    }
    filled.remarks.insert(filled.remarks.end(), failures.begin(), failures.end());
    for (const std::string& remark : filled.remarks) log::warning("[figure] " + remark);
    if (filled.found < filled.wanted) {
      log::warning(fmt::format("[figure] {} of {} runs are in the figure", filled.found, filled.wanted));
    }
    print_files(draw_charts(filled.charts, folder));
  };
  return make_design(line, arguments, figure, figure.wanted_cells(), folder, show);
}

struct LevelSetOptions {
  std::string folder = kFigureFolder, figure = "all";
  LevelSetRequest request;
};

int draw_level_set_figures(const CommandLine& line, LevelSetOptions options) {
  std::vector<LevelSetFigure> figures = level_set_figures();
  if (options.figure != "all") {
    std::erase_if(figures, [&](const LevelSetFigure& figure) { return figure.number != options.figure; });
  }
  options.request.folder = options.folder;
  print_files(draw_level_sets(line.registries.losses, figures, options.request));
  return kSuccess;
}

}  // namespace

void add_figure_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "figure",
      "Draws figures of the papers, as SVG and PNG, with gnuplot: trains what they need, or goes on, and writes the data "
      "as CSV beside. `settrain figure list` has all of them");
  command->require_subcommand(0, 1);
  add_design_options(*command, line, "figure", "icml2022/2, thesis/5.5; or a figure's file", kFigureFolder,
                     make_paper_figure);
  add_design_list(*command, line, "figure", {"figure", "of"},
                  [&line](DesignList& list) { return list_figures(line, list); });
  const auto [sets, options] = add_subcommand<LevelSetOptions>(
      *command, line, "level-sets", draw_level_set_figures,
      "Level sets of losses, after Garcin et al., ICML 2022. The plane: scores of three classes, none below 0, that add "
      "up to 2; the label's is 2 at the upper corner, another class' at each lower one. Each loss is rescaled to [0, 1] "
      "over that triangle; its range stands below. With the pictures come the data (.dat) and a script (.gp)");
  sets->add_option("--out", options->folder, "The folder to write to")
      ->capture_default_str()
      ->check(not_empty("folder"));
  sets->add_option("--figure", options->figure,
                   "The paper's number: 1 (losses for K = 2), 4 (number of draws), 5 (epsilon), 6 (losses for K = 1)")
      ->capture_default_str()
      ->check(CLI::IsMember({"1", "4", "5", "6", "all"}));
  add_integer(*sets, "--size", options->request.size, 11, 1001, "Points along a side of the triangle");
  sets->add_option("--seed", options->request.seed, "Seed of the noised losses' draws")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  sets->add_option(
          "--replications", options->request.replications,
          "Evaluations of the noised losses, with draws of their own, whose mean is drawn; without it 1 in figure "
          "4, 100 in the others")
      ->check(CLI::Range(1, 100000));
}

}  // namespace settrain
