// How an image of any size becomes the model's input: data.pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/key.h"
#include "src/loader/view.h"

namespace settrain {

struct PipelineOptions {
  std::string pipeline = "plain";
  int64_t input_size = kAuto, resize_size = kAuto, pad = kAuto;
  std::string interpolation = kAutoInterpolation;
  config::Switch flip = config::Switch::kAuto;

  double crop_share = 0;  // of the weights that a run starts from, see PretrainedSource; 0: not known. No key.

  static constexpr int64_t kAuto = -1;                       // the word auto
  static constexpr const char* kAutoInterpolation = "auto";  // that of the weights, or bilinear

  /// Whether evaluation cuts the centre out of an image that was scaled to a larger shorter side, as crop_share says.
  bool cuts_centre_out() const;

  static config::Keys keys();
};

/// The use of the views.
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

  /// Height and width of the model's input.
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  /// The number of views of an image: 1 or 10.
  int64_t views() const { return use_ == ViewUse::kTenCrops ? 10 : 1; }
  /// Whether the views of an image differ from epoch to epoch.
  bool is_random() const;
  /// Whether views of an image of that size are scaled.
  bool resizes(int64_t image_height, int64_t image_width) const;

  /// The views of an image of that size. Training views are a function of (seed, epoch, sample id, repetition), see
  /// AugmentationKey.
  std::vector<View> views_of(int64_t image_height, int64_t image_width, int64_t epoch, int64_t sample_id,
                             int64_t repetition = 0) const;

 private:
  // The options with `auto` resolved.
  struct Recipe {
    bool scales_short_side = false, draws_resized_crop = false;
    int64_t resize_size = 0, pad = 0;
    bool flip = false;
    Filter filter = Filter::kBilinear;
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
