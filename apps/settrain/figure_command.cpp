#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/settrain/command_line.h"
#include "apps/settrain/paper_figure_command.h"
#include "src/papers/level_sets/level_sets.h"

namespace settrain {
namespace {

struct LevelSetOptions {
  std::string folder = "figures/", figure = "all";
  LevelSetRequest request;
};

int draw(const CommandLine& line, LevelSetOptions options) {
  std::vector<LevelSetFigure> figures = level_set_figures();
  if (options.figure != "all") {
    std::erase_if(figures, [&](const LevelSetFigure& figure) { return figure.number != options.figure; });
  }
  options.request.folder = options.folder;
  for (const auto& file : draw_level_sets(line.registries.losses, figures, options.request)) {
    std::cout << file.string() << '\n';
  }
  return kSuccess;
}

}  // namespace

void add_figure_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "figure",
      "Draws figures of the papers, as SVG and PNG, with gnuplot: trains what they need, or goes on, and writes the data "
      "as CSV beside. `settrain figure list` has all of them");
  command->require_subcommand(0, 1);
  add_paper_figures(*command, line);
  CLI::App* sets = command->add_subcommand(
      "level-sets",
      "Level sets of losses, after Garcin et al., ICML 2022. The plane: scores of three classes, none below 0, that add "
      "up to 2; the label's is 2 at the upper corner, another class' at each lower one. Each loss is rescaled to [0, 1] "
      "over that triangle; its range stands below. With the pictures come the data (.dat) and a script (.gp)");
  const auto options = std::make_shared<LevelSetOptions>();
  sets->add_option("--out", options->folder, "The folder to write to")
      ->capture_default_str()
      ->check([](const std::string& folder) { return std::string(folder.empty() ? "is empty: name a folder" : ""); });
  sets->add_option("--figure", options->figure,
                   "The paper's number: 1 (losses for K = 2), 4 (number of draws), 5 (epsilon), 6 (losses for K = 1)")
      ->capture_default_str()
      ->check(CLI::IsMember({"1", "4", "5", "6", "all"}));
  sets->add_option("--size", options->request.size, "Points along a side of the triangle")
      ->capture_default_str()
      ->check(CLI::Range(11, 1001));
  sets->add_option("--seed", options->request.seed, "Seed of the noised losses' draws")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  sets->add_option(
          "--replications", options->request.replications,
          "Evaluations of the noised losses, with draws of their own, whose mean is drawn; without it 1 in figure "
          "4, 100 in the others")
      ->check(CLI::Range(1, 100000));
  sets->callback([&line, options] { line.action = [&line, options] { return draw(line, *options); }; });
}

}  // namespace settrain
