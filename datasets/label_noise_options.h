// The section data.label_noise of a configuration.
#pragma once

#include <cstdint>
#include <string>

#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain {

struct LabelNoiseOptions {
  std::string kind;        // none, superclass, index_block, uniform or confusion
  double rate = 0;         // probability that a label is drawn anew
  int64_t block_size = 0;  // of index_block
  uint64_t seed = 0;
  std::string matrix{};  // file of confusion, see confusion_matrix.h
};

/// The section data.label_noise.
config::Section label_noise_section();

/// The section's values; the seed `auto` is the run's.
LabelNoiseOptions read_label_noise(const config::Config& config);

}  // namespace settrain
