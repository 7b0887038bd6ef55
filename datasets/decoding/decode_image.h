// From an image file to pixels, and from pixels to a PNG.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "datasets/decoding/image.h"

namespace settrain {

/// How image files are decoded.
struct DecodeOptions {
  int64_t channels = 3;            // 3 (RGB) or 1 (grey)
  bool apply_orientation = false;  // turn and mirror as the EXIF block of a JPEG, PNG or WebP says
};

/// The largest number of pixels that an image may declare. It is Pillow's limit, above which Pillow suspects an attack.
inline constexpr int64_t kMostPixels = 178'956'970;

/// Decodes at least the part that `choose` returns of a JPEG, PNG, BMP, WebP or TIFF file with these bytes, reusing the
/// memory of `part`. The format is recognised from the bytes. The pixels equal those of Pillow's convert("RGB"), or of
/// convert("L") where one channel is asked for and the image is no JPEG; only 16-bit greys, of which Pillow makes
/// white, become their high byte. Transparency is dropped, gamma and colour profiles are ignored. An animation or a
/// file of several pages gives its first image. A TIFF is turned as its orientation says. Returns the first warning of
/// the format's library, with its name in front, and an empty text where there was none. Throws std::runtime_error with
/// the reason where the bytes are no such image, are damaged, are cut short, or declare more than kMostPixels.
std::string decode_image(std::span<const uint8_t> bytes, const DecodeOptions& options, const ChoosePart& choose,
                         ImagePart& part);

/// Must be called before decoding. Throws Error in a build without image decoding (no_image_decoder.cpp).
void prepare_decoding();

/// The versions of the libraries that read and write images, by their names: {"libpng", "1.6.39"}. Empty in a build
/// without image decoding.
std::map<std::string, std::string> image_library_versions();

/// The bytes of a PNG file of an image. Throws std::invalid_argument where it has neither 1 (grey) nor 3 (RGB)
/// channels; Error in a build without image files (no_image_decoder.cpp).
std::vector<uint8_t> encode_png(const Image& image);

}  // namespace settrain
