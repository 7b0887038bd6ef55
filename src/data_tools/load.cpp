#include "src/data_tools/load.h"

#include "datasets/image_files.h"
#include "src/core/error.h"

namespace settrain {

LoadedData load_data(const DatasetRegistry& registry, const config::Config& config) {
  try {
    LoadedData data;
    data.dataset = registry.at(config.get<std::string>("data.name")).make(config);
    data.clean_labels = data.dataset.train.labels;
    data.label_noise = apply_label_noise(config, data.dataset);
    return data;
  } catch (const KeyError& error) {
    if (!config.has(error.path())) throw;
    config.fail(error.path(), error.message());
  }
}

std::filesystem::path file_of(const ImageSource& images, int64_t id) {
  const auto* files = dynamic_cast<const ImageFiles*>(&images);
  return files ? files->files().at(static_cast<size_t>(id)) : std::filesystem::path();
}

}  // namespace settrain
