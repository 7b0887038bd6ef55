#include "datasets/load_data.h"

#include "datasets/calibration_split.h"
#include "datasets/class_options.h"
#include "datasets/long_tail.h"
#include "src/core/error.h"

namespace settrain {

LoadedData load_data(const DatasetRegistry& registry, const config::Config& config) {
  try {
    LoadedData data;
    data.dataset = registry.at(config.get<std::string>("data.name")).make(config);
    apply_class_options(config.read<ClassOptions>("data"), data.dataset);
    apply_long_tail(config.read<LongTailOptions>("data"), data.dataset);
    hold_out_calibration(config.read<CalibrationOptions>("data"), data.dataset);
    data.clean_labels = data.dataset.train.labels;
    data.label_noise = apply_label_noise(config, data.dataset);
    return data;
  } catch (const KeyError& error) {
    if (!config.has(error.path())) throw;
    config.fail(error.path(), error.message());
  }
}

}  // namespace settrain
