#include "src/papers/level_sets/draw_level_sets.h"

#include <fmt/format.h>

#include "src/core/atomic_file.h"
#include "src/core/log.h"
#include "src/papers/level_sets/level_set_data.h"
#include "src/papers/level_sets/level_set_script.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

void write_data_and_script(const LossRegistry& registry, const LevelSetFigure& figure, const LevelSetRequest& request) {
  const PlaneGrid grid(request.size);
  const LevelSetDraws draws{request.seed, request.replications.value_or(figure.replications)};
  std::vector<LevelSetValues> values;
  std::vector<bool> noised;
  for (const LevelSetPanel& panel : figure.panels) {
    values.push_back(level_set_values(registry, panel, grid, draws));
    noised.push_back(draws_noise(registry, panel));
  }
  write_file_atomically(request.folder / (figure.name + ".dat"), level_set_data(figure, grid, values));
  write_file_atomically(request.folder / (figure.name + ".gp"), level_set_script(figure, values, noised, draws));
}

}  // namespace

std::vector<fs::path> draw_level_sets(const LossRegistry& registry, const std::vector<LevelSetFigure>& figures,
                                      const LevelSetRequest& request) {
  const fs::path& folder = request.folder;
  make_figure_folder(folder);
  for (const LevelSetFigure& figure : figures) {
    log::info(fmt::format("[figure] {}: {} panels", figure.name, figure.panels.size()));
    write_data_and_script(registry, figure, request);
  }

  std::vector<fs::path> files;
  for (const LevelSetFigure& figure : figures) {
    draw_pictures(figure.name, folder);
    for (const fs::path& file : figure_files(figure.name, folder)) files.push_back(file);
  }
  return files;
}

}  // namespace settrain
