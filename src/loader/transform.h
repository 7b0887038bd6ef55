// From the pixels of an image to the model's input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

struct Augmentation {
  int64_t pad = 0;  // pixels of black border, out of which a crop of the image's size is drawn
  bool flip = false;
  uint64_t seed = 0;
};

/// Pads, crops, flips, scales to [0, 1] and normalises, in one pass. What is drawn for a sample is a function of (seed,
/// epoch, sample id) alone. Thread-safe.
class Transform {
 public:
  Transform(const Normalisation& normalisation, const Augmentation& augmentation);

  /// Writes `output`, [channels, height, width] of the image. Throws std::invalid_argument where its size is another,
  /// or the image has other channels than the normalisation.
  void operator()(const Image& image, int64_t epoch, int64_t sample_id, std::span<float> output) const;

 private:
  // One image's augmentation: output pixel (y, x) is input pixel (y + down, x + right), or black outside.
  struct Move {
    int64_t down = 0, right = 0;
    bool flip = false;
  };
  Move draw(int64_t epoch, int64_t sample_id) const;

  Augmentation augmentation_;
  std::vector<float> values_;  // [channels, 256] the normalised value of every pixel value
};

}  // namespace settrain
