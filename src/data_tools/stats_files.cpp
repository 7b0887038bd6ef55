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

  std::vector<Picture> pictures{chart_picture(lorenz_chart(stats)), chart_picture(class_counts_chart(stats))};
  if (has_noise_figure(stats)) {
    pictures.push_back(noise_figure(stats));
  } else if (stats.has_noise()) {
    log::info("[data] no picture of the noise matrix: there is one class, or too many to be told apart");
  }
  for (const auto& file : draw_pictures(
           pictures.size(), [&](size_t i) { return pictures[i]; }, folder))
    files.push_back(file);
  return files;
}

}  // namespace settrain
