// From an image file to pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "datasets/dataset.h"

namespace settrain {

/// What the pixels of image files become.
struct DecodeOptions {
  int64_t channels = 3;            // 3 (RGB) or 1 (grey)
  bool apply_orientation = false;  // turn and mirror as the EXIF block of a JPEG asks for
};

/// The most pixels that an image may declare: Pillow's limit, above which it takes a file for an attack.
inline constexpr int64_t kMostPixels = 178'956'970;

/// Decodes at least the part that `choose` returns of a JPEG, PNG, BMP, WebP or TIFF file with these bytes, reusing the
/// memory of `part`. Which of them it is, the bytes say. Transparency is dropped, deeper pixels become 8-bit, colour
/// profiles are ignored. Throws std::runtime_error that says why where the bytes are no such image, cut short, or
/// declare more than kMostPixels.
void decode_image(std::span<const uint8_t> bytes, const DecodeOptions& options, const ChoosePart& choose,
                  ImagePart& part);

/// To be called before decoding. Throws Error in a build without image decoding (CMake: SETTRAIN_IMAGE_FILES=OFF),
/// whose decode_image() knows no format (no_image_decoder.cpp).
void prepare_decoding();

/// OpenCV's version, "4.6.0"; "none" in a build without image decoding.
std::string decoder_version();

/// Decodes the whole image by OpenCV alone and forgets it, for its speed.
void decode_by_opencv(std::span<const uint8_t> bytes);

}  // namespace settrain
