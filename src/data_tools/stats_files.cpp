#include "src/data_tools/stats_files.h"

#include "src/core/atomic_file.h"
#include "src/core/log.h"
#include "src/data_tools/noise_figure.h"
#include "src/data_tools/stats_figures.h"
#include "src/data_tools/stats_json.h"
#include "src/data_tools/stats_text.h"

namespace settrain {

std::vector<std::filesystem::path> write_stats(const DataStats& stats, const std::filesystem::path& folder) {
  make_figure_folder(folder);
  write_file_atomically(folder / "stats.json", stats_json(stats));
  write_file_atomically(folder / "stats.txt", stats_text(stats));
  std::vector<std::filesystem::path> files{folder / "stats.json", folder / "stats.txt"};

  std::vector<StatsFigure> figures{lorenz_figure(stats), class_counts_figure(stats)};
  if (has_noise_figure(stats)) {
    figures.push_back(noise_figure(stats));
  } else if (stats.has_noise()) {
    log::info("[data] no picture of the noise matrix: there is one class, or too many to be told apart");
  }
  for (const StatsFigure& figure : figures) {
    const std::string& name = figure.script.name;
    write_file_atomically(folder / (name + ".dat"), figure.data);
    write_file_atomically(folder / (name + ".gp"), picture_script(figure.script));
  }
  for (const StatsFigure& figure : figures) {
    draw_pictures(figure.script.name, folder);
    for (const auto& file : figure_files(figure.script.name, folder)) files.push_back(file);
  }
  return files;
}

}  // namespace settrain
