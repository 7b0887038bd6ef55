#include "datasets/load_data.h"

#include "datasets/calibration_split.h"
#include "datasets/class_table.h"
#include "datasets/long_tail.h"
#include "datasets/recorded_files.h"
#include "datasets/shared_images.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {

config::Keys ClassOptions::keys() {
  using config::key;
  return {key("superclasses", &ClassOptions::superclasses, "",
              "Text file with a line 'class,superclass' for every class, for label noise within superclasses; where "
              "empty, the data set's own superclasses, if any."),
          key("class_names", &ClassOptions::class_names, "",
              "Text file with a line 'class,name' for every class, for tables; where empty, the data set's own "
              "names.")};
}

void apply_class_options(const ClassOptions& options, Dataset& dataset) {
  if (!options.superclasses.empty()) {
    set_superclasses(read_class_table(options.superclasses, dataset.class_names, dataset.class_keys), dataset);
  }
  if (!options.class_names.empty()) {
    dataset.class_names = read_class_table(options.class_names, dataset.class_names, dataset.class_keys);
  }
}

namespace {

// Warns of images that are in two splits, or have two labels.
void find_shared(LoadedData& data) {
  constexpr int64_t kMostFiles = 5000;  // whose contents are compared whenever data are loaded: about a second
  SharedImageSearch search = find_shared_images(data.dataset, kMostFiles);
  for (const SharedImages& shared : search.found) log::warning("[data] " + shared.text());
  for (const TwoLabels& labels : search.two_labels) log::warning("[data] " + labels.text());
  data.dataset.shared_images = std::move(search.found);
  data.not_compared = search.not_compared;
}

}  // namespace

LoadedData load_data(const DatasetRegistry& registry, const config::Config& config) {
  try {
    LoadedData data;
    data.dataset = registry.at(config.get<std::string>("data.name")).make(config);
    apply_class_options(config.read<ClassOptions>("data"), data.dataset);
    apply_long_tail(config.read<LongTailOptions>("data"), data.dataset);
    hold_out_calibration(config.read<CalibrationOptions>("data"), data.dataset);
    for (Split* split : {&data.dataset.train, &data.dataset.val, &data.dataset.calibration, &data.dataset.test}) {
      if (split->size() > 0) split->digest = digest_of(*split, data.dataset);
    }
    find_shared(data);
    data.clean_labels = data.dataset.train.labels;
    data.label_noise = apply_label_noise(read_label_noise(config), data.dataset);
    return data;
  } catch (const KeyError& error) {
    if (!config.has(error.path())) throw;
    config.fail(error.path(), error.message());
  }
}

}  // namespace settrain
