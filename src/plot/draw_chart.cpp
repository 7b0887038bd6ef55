#include "src/plot/draw_chart.h"

#include "src/core/atomic_file.h"
#include "src/plot/chart_script.h"
#include "src/plot/pictures.h"

namespace settrain {

std::vector<std::filesystem::path> draw_chart(const Chart& chart, const std::filesystem::path& folder) {
  const std::string data = chart_csv(chart), script = chart_script(chart);
  make_figure_folder(folder);
  write_file_atomically(folder / (chart.name + ".csv"), data);
  write_file_atomically(folder / (chart.name + ".gp"), script);
  draw_pictures(chart.name, folder);
  return figure_files(chart.name, folder, ".csv");
}

}  // namespace settrain
