// Resizing and cropping of images, to the bytes of Pillow, which torchvision's transforms are made of.
#pragma once

#include <cstdint>

#include "datasets/dataset.h"

namespace settrain {

/// The part of `image` of that size whose upper left corner is at (`top`, `left`). Throws std::invalid_argument where
/// it is not inside.
Image crop(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

/// `image` at another size, by Pillow's bilinear filter, which averages over all pixels where it shrinks: first along
/// rows, then along columns, each rounded to 8 bits, as Pillow up to version 12 does it. The same bytes as Pillow's.
/// Throws std::invalid_argument unless both sizes are at least 1.
Image resize_bilinear(const Image& image, int64_t height, int64_t width);

/// Scaled so that the shorter side has `size` pixels, the longer one the quotient rounded down, as torchvision's
/// Resize.
Image resize_short_side(const Image& image, int64_t size);

/// Scaled so that it just covers `height` x `width`, with its proportions kept, and cropped to that in the centre.
Image resize_and_crop(const Image& image, int64_t height, int64_t width);

/// The central `height` x `width`, as torchvision's CenterCrop: halves of a pixel go to the even number, and what an
/// image that is too small lacks is black.
Image center_crop(const Image& image, int64_t height, int64_t width);

}  // namespace settrain
