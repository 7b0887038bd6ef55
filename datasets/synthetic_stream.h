// What the synthetic data set draws from Stream::kSynthetic.
#pragma once

#include <cstdint>

namespace settrain {

/// The `step` of each use's random words, which keeps them apart.
enum SyntheticUse : uint32_t {
  kTemplate,  // item = cell, block = node of the template's grid
  kOrder,     // of the training labels
  kSample,    // item = sample id: its label and its cell
  kPixels,    // item = sample id, block = four pixel values
  kLabelSet,  // item = sample id, block = two labels beside its own
};

}  // namespace settrain
