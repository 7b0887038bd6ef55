// Operations on the pixels of an image, to the bytes of torchvision's functions on Pillow images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/decoding/image.h"

namespace settrain {

/// The kinds of operations, each with the meaning of its amount. A map of places takes the nearest pixel, and is black
/// beyond the image.
enum class OperationKind {
  kIdentity,      // no amount
  kShearX,        // pixels to the left for each row downwards
  kShearY,        // pixels upwards for each column to the right
  kTranslateX,    // whole pixels to the right
  kTranslateY,    // whole pixels downwards
  kRotate,        // degrees, counter-clockwise about the centre
  kBrightness,    // factor: 0 is black, 1 the image
  kColour,        // factor: 0 is grey, 1 the image; leaves grey images alone
  kContrast,      // factor: 0 is the mean grey, 1 the image
  kSharpness,     // factor: 0 is smoothed, 1 the image
  kPosterize,     // bits that each number keeps, 1 to 8
  kSolarize,      // numbers from this one on are inverted, 0 to 255
  kAutocontrast,  // no amount
  kEqualize,      // no amount
  kInvert,        // no amount
  kHue,           // share of a turn of the hue, -0.5 to 0.5; leaves grey images alone
};

struct ImageOperation {
  OperationKind kind = OperationKind::kIdentity;
  double amount = 0;

  bool operator==(const ImageOperation&) const = default;
};

/// "rotate -9", "equalize".
std::string describe(const ImageOperation& operation);

/// Works on images of 1 or 3 channels. Keeps its memory from image to image; used by one thread.
class ImageEditor {
 public:
  /// Changes the pixels of `image`, whose size stays. Only a map of places needs a second copy of the image. Throws
  /// std::invalid_argument where the image has other channels, or less than a pixel.
  void apply(const ImageOperation& operation, Image& image);

 private:
  void warp(const ImageOperation& operation, Image& image);
  void rotate(double degrees, Image& image);
  void map_numbers(const ImageOperation& operation, Image& image);
  void saturate(float factor, Image& image);
  void sharpen(float factor, Image& image);

  std::vector<uint8_t> moved_;                   // the image of a map of places
  std::vector<uint8_t> above_, row_, smoothed_;  // rows
};

/// Fills the pixels of `box`, which lies within the image, with one colour: [channels].
void fill_box(const Box& box, const std::vector<uint8_t>& colour, Image& image);

}  // namespace settrain
