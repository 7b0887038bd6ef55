// A config to begin with, for a folder of photographs: `settrain init`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/data_tools/split_folder.h"

namespace settrain {

/// A file of weights that others trained, and the network that it is for.
struct KnownWeights {
  std::string model;           // a choice of model.name
  std::filesystem::path file;  // which is there
};

/// The facts that a config is chosen by.
struct StarterFacts {
  int64_t train = 0, fewest = 0, most = 0;  // training images: all, and those of the smallest and the largest class
  int64_t short_side = 0;                   // pixels: the median of the images' shorter sides; 0: it is not known
  bool has_gpu = false;
  bool is_verified = false;  // every image was read, and those that cannot be read are in no list
};

/// Counts the training images, and reads their sizes from their headers.
StarterFacts starter_facts(const std::filesystem::path& folder, const FolderSplit& split);

/// A network, the parts of it that train, and the range in which input size and epochs are chosen by their cost.
struct StarterNetwork {
  std::string model;
  std::filesystem::path weights{};   // empty: none, and training begins from nothing
  bool trains_head_alone = false;    // on features that are made once
  std::vector<int64_t> input_sizes;  // pixels, largest first
  int64_t least_epochs = 1, most_epochs = 1;
};

/// The network for these photographs on this machine: one with weights where there are some, all of it on a GPU, and
/// its head alone without one; without weights a small ResNet that is trained from nothing.
StarterNetwork choose_network(const StarterFacts& facts, const std::vector<KnownWeights>& weights);

/// Choices that their cost on this machine has decided, and the reason for each, for the config's comments.
struct StarterCost {
  int64_t input_size = 0, epochs = 0;
  std::string size_reason, epochs_reason;
};

/// The whole config as YAML, with a reason behind each line.
std::string starter_config(const SplitRequest& request, const FolderSplit& split, const StarterFacts& facts,
                           const StarterNetwork& network, const StarterCost& cost);

/// The name of the run that a folder of photographs gets: the folder's, of letters, digits, '.', '_' and '-' alone.
std::string starter_name(const std::filesystem::path& folder);

}  // namespace settrain
