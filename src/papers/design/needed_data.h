// The data and files that the runs of a table or figure need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "datasets/registry.h"
#include "src/config/config.h"

namespace settrain {

/// The facts of a run's data, the long tail of its config included; `size` and `channels` are those of the model's
/// input. Nothing where the data set does not say: the user's own (image_folder, file_list), and where any size will do
/// (data.expected: any), or superclasses are left out (data.only_superclasses, data.superclass_share).
std::optional<DataFacts> facts_of(const DatasetRegistry& datasets, const config::Config& config);

/// The files that the run needs and that are not there, each as a sentence: its data, the weights that it starts from.
std::vector<std::string> missing_files(const config::Config& config);

/// The files that the run needs, there or not: its data, "cifar100 (data/cifar-100-binary)", and the file of its first
/// weights, where it has one.
struct NeededFiles {
  std::string data;
  std::optional<std::string> weights;
};
NeededFiles needed_files(const config::Config& config);

}  // namespace settrain
