#include "src/figure/draw_level_sets.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "src/core/atomic_file.h"
#include "src/core/descriptor.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/figure/gnuplot.h"
#include "src/figure/level_set_data.h"
#include "src/figure/level_set_script.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPictures{".svg", ".png"};

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

// Under other names first, so that a picture is whole or absent.
void draw(const std::string& name, const fs::path& folder) {
  const std::string temporary = fmt::format(".{}.tmp-{}", name, ::getpid());
  std::error_code error;
  try {
    const std::string warnings = run_gnuplot(folder, {"-e", "out='" + temporary + "'", name + ".gp"});
    if (!warnings.empty()) log::warning(fmt::format("[figure] {}: gnuplot says: {}", name, warnings));
    for (const char* ending : kPictures) {
      fs::rename(folder / (temporary + ending), folder / (name + ending), error);
      if (error) throw file_error("write", folder / (name + ending), error.value());
    }
  } catch (const Error& problem) {
    for (const char* ending : kPictures) fs::remove(folder / (temporary + ending), error);
    throw Error(
        fmt::format("{}\n{} and the like were not drawn; the data and scripts are there: run `gnuplot {}.gp` in {}",
                    problem.what(), name + ".png", name, folder.string()));
  }
}

}  // namespace

std::vector<fs::path> draw_level_sets(const LossRegistry& registry, const std::vector<LevelSetFigure>& figures,
                                      const LevelSetRequest& request) {
  const fs::path& folder = request.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw file_error("create", folder, error.value());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw file_error("write to", folder, errno);
  for (const LevelSetFigure& figure : figures) {
    log::info(fmt::format("[figure] {}: {} panels", figure.name, figure.panels.size()));
    write_data_and_script(registry, figure, request);
  }

  std::vector<fs::path> files;
  for (const LevelSetFigure& figure : figures) {
    draw(figure.name, folder);
    for (const char* ending : {".svg", ".png", ".dat", ".gp"}) files.push_back(folder / (figure.name + ending));
  }
  return files;
}

}  // namespace settrain
