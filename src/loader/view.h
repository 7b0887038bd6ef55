// What of an image a model sees, in numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// The pixels `source` of an image are scaled to `height` x `width`. Of these, `crop` is what the model sees; where it
/// reaches beyond them it is black. `flip` mirrors it left to right.
struct View {
  Box source;
  int64_t height = 0, width = 0;
  Box crop;
  bool flip = false;

  bool operator==(const View&) const = default;
};

/// The whole of an image of that size, as it is.
View whole_view(int64_t height, int64_t width);

/// The whole image scaled so that its shorter side has `side` pixels and the longer one the quotient rounded down, as
/// torchvision's Resize. `crop` is all of it.
View with_short_side(int64_t height, int64_t width, int64_t side);

/// The whole image scaled so that it just covers `height` x `width`, with its proportions kept. `crop` is all of it.
View covering(int64_t image_height, int64_t image_width, int64_t height, int64_t width);

/// `view` with the central `height` x `width` of what is scaled, as torchvision's CenterCrop: halves of a pixel go to
/// the even number, and an image that is too small lies in the middle of black.
View center_crop(View view, int64_t height, int64_t width);

/// The pixels of the image that `view` depends on, a part of `view.source`; at least one pixel.
Box needed_pixels(const View& view);

/// The smallest box with what each of `views`, at least one, depends on.
Box needed_pixels(const std::vector<View>& views);

}  // namespace settrain
