// How an image of any size becomes what a model sees: data.pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/pipeline_options.h"
#include "src/loader/random_crop.h"
#include "src/loader/view.h"

namespace settrain {

/// What the views are for.
enum class ViewUse {
  kTraining,
  kEvaluation,  // the centre
  kTenCrops,    // the four corners and the centre, and all five mirrored (Krizhevsky et al. 2012)
};

class Pipeline {
 public:
  /// `height` and `width` are those of all images, or 0 where they differ. Throws KeyError where the options do not fit
  /// each other or the images.
  Pipeline(const PipelineOptions& options, int64_t height, int64_t width, ViewUse use, uint64_t seed = 0);

  /// Of the model's input.
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  /// The number of views of an image: 1 or 10.
  int64_t views() const { return use_ == ViewUse::kTenCrops ? 10 : 1; }
  /// Whether views of an image of that size are of other pixels than its own: scaled.
  bool resizes(int64_t image_height, int64_t image_width) const;

  /// The views of an image of that size. Training views are a function of (seed, epoch, sample id, repetition): how
  /// often the epoch took the image before.
  std::vector<View> views_of(int64_t image_height, int64_t image_width, int64_t epoch, int64_t sample_id,
                             int64_t repetition = 0) const;

 private:
  // Of every pipeline, as its options came to.
  struct Recipe {
    bool scales_short_side = false, draws_resized_crop = false;
    int64_t resize_size = 0, pad = 0;
    bool flip = false;
  };
  static Recipe recipe_of(const PipelineOptions& options, int64_t input_size, ViewUse use);

  View scaled(int64_t image_height, int64_t image_width) const;
  View training_view(int64_t image_height, int64_t image_width, const AugmentationKey& key) const;
  std::vector<View> ten_crops(const View& scaled) const;

  int64_t height_, width_;
  ViewUse use_;
  uint64_t seed_;
  Recipe recipe_;
};

}  // namespace settrain
