#include "src/papers/figure/lorenz_chart.h"

#include <fmt/format.h>

#include "src/config/load.h"
#include "src/data_tools/stats_files.h"

namespace settrain {

config::Config lorenz_config(const PaperFigure& figure, const config::Schema& schema) {
  std::vector<std::string> overrides;
  for (const Settings* some : {&figure.common, &figure.preset_settings}) {
    for (const auto& [key, value] : *some) overrides.push_back(fmt::format("{}={}", key, value));
  }
  return config::load(schema, figure.base, overrides);
}

Chart lorenz_chart(const PaperFigure& figure, const Dataset& dataset) {
  std::vector<int64_t> counts(static_cast<size_t>(dataset.num_classes()), 0);
  int64_t images = 0;
  for (const Split* split : {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test}) {
    const std::vector<int64_t> of_split = count_classes(*split, dataset.num_classes());
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += of_split[i];
    images += split->size();
  }
  const std::string origin = figure.origin();
  return {.name = figure.chart_name(""),
          .title = figure.title,
          .subtitle = fmt::format("{}{}{} images of {} classes, all splits.", origin, origin.empty() ? "" : " ", images,
                                  counts.size()),
          .panels = {lorenz_panel({{dataset.name, counts}})}};
}

}  // namespace settrain
