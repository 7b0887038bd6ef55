// How a new label is drawn for a sample.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "datasets/dataset.h"
#include "datasets/label_noise_options.h"

namespace settrain {

/// Draws new labels for old ones, by the kind of noise.
class LabelDraw {
 public:
  virtual ~LabelDraw() = default;
  virtual double chance_of_change(int64_t label) const = 0;
  /// `random`: the words of the sample, a function of its id and the seed alone.
  virtual int64_t draw(int64_t label, const std::array<uint32_t, 4>& random) const = 0;
};

/// Of every kind but none. Throws DataError where the matrix of confusion is not as confusion_matrix.h says.
std::unique_ptr<const LabelDraw> make_label_draw(const LabelNoiseOptions& options, const Dataset& dataset);

}  // namespace settrain
