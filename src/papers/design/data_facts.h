// What a run's data are like, known before they are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"

namespace settrain {

/// Sizes that follow from a resolved config, and for published data sets from what was published.
struct DataFacts {
  int64_t classes = 0;
  int64_t train = 0, val = 0, test = 0;  // images
  int64_t size = 0, channels = 3;        // of the model's input, in pixels
};

/// Nothing for data of the user's own (image_folder, file_list) and where any size will do (data.expected: any).
std::optional<DataFacts> facts_of(const config::Config& config);

/// What the run needs and what is not there, each as a sentence: its data, the weights that it starts from.
std::vector<std::string> missing_files(const config::Config& config);

/// What the run needs, there or not: its data, "cifar100 (data/cifar-100-binary)", and the file of its first weights,
/// where it has one.
struct NeededFiles {
  std::string data;
  std::optional<std::string> weights;
};
NeededFiles needed_files(const config::Config& config);

}  // namespace settrain
