#include "src/papers/level_sets/draw_level_sets.h"

#include <fmt/format.h>

#include "src/core/log.h"
#include "src/papers/level_sets/level_set_data.h"
#include "src/papers/level_sets/level_set_picture.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

Picture picture_of(const LossRegistry& registry, const LevelSetFigure& figure, const LevelSetRequest& request) {
  log::info(fmt::format("[figure] {}: {} panels", figure.name, figure.panels.size()));
  const PlaneGrid grid(request.size);
  const LevelSetDraws draws{request.seed, request.replications.value_or(figure.replications)};
  std::vector<LevelSetValues> values;
  std::vector<bool> noised;
  for (const LevelSetPanel& panel : figure.panels) {
    values.push_back(level_set_values(registry, panel, grid, draws));
    noised.push_back(draws_noise(registry, panel));
  }
  Picture picture = level_set_picture(figure, values, noised, draws);
  picture.data = level_set_data(figure, grid, values);
  return picture;
}

}  // namespace

std::vector<fs::path> draw_level_sets(const LossRegistry& registry, const std::vector<LevelSetFigure>& figures,
                                      const LevelSetRequest& request) {
  return draw_pictures(
      figures.size(), [&](size_t i) { return picture_of(registry, figures[i], request); }, request.folder);
}

}  // namespace settrain
