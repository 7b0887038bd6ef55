// The decoders of single image formats, from which decode_image() chooses, and what they share.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "datasets/decoding/image.h"
#include "datasets/decoding/image_header.h"

namespace settrain {

// Each decoder reads a whole image of the size in `header` into `image`, reusing its memory: 8 bits, `channels` = 3
// (RGB) or 1 (grey), Pillow's pixels. Transparency is dropped; gamma values and colour profiles are ignored; the high
// byte of 16-bit samples is taken. PNG and TIFF return the first warning of their library, empty where there was none.
// Each throws std::runtime_error with the reason where the file is damaged or cut short, or has another size than the
// header says.

/// PNG, by libpng. An animation gives its default image.
std::string decode_png(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image);

/// WebP, by libwebp. An animation gives its first frame, on black.
void decode_webp(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image);

/// The first page of a TIFF, by libtiff, as stored. `orientation` becomes that of its tag, 1 to 8, as in EXIF.
std::string decode_tiff(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image,
                        int& orientation);

/// BMP of 1, 4, 8, 16, 24 and 32 bits, runs (RLE) included.
void decode_bmp(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image);

/// Decodes at least the part that `choose` returns to `channels` = 3 (RGB) or 1 (grey), reusing the memory of `part`.
/// The pixels equal those of the whole image as Pillow decodes it: grey becomes R = G = B, and CMYK is multiplied out.
/// Rows below the part are not decoded, and as few pixels above or beside it as the format allows. EXIF orientation is
/// ignored. Returns libjpeg's first warning, or an empty text. Throws std::runtime_error where the bytes cannot be
/// decoded as JPEG.
std::string decode_jpeg(std::span<const uint8_t> bytes, int64_t channels, const ChoosePart& choose, ImagePart& part);

/// The versions of the formats' libraries, "1.6.39": those in use, but for libjpeg-turbo, which tells only the one that
/// the program was built with.
std::string jpeg_library_version();
std::string png_library_version();
std::string tiff_library_version();
std::string webp_library_version();

/// Sets the size of `image`, but not its memory. Throws std::runtime_error where `header` has another.
inline void set_size(Image& image, const ImageHeader& header, int64_t height, int64_t width, int64_t channels) {
  if (height != header.height || width != header.width) throw std::runtime_error("its size is contradictory");
  image.height = height;
  image.width = width;
  image.channels = channels;
}

/// a * b / 255, rounded.
inline uint8_t multiply(int a, int b) {
  const int product = a * b + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

/// The grey of a colour (Rec. 601), rounded as Pillow does.
inline uint8_t grey_of(int red, int green, int blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

/// Writes a colour to `out` as 1 or 3 channels. Returns the place behind it.
inline uint8_t* store(uint8_t* out, int64_t channels, int red, int green, int blue) {
  if (channels == 1) {
    *out++ = grey_of(red, green, blue);
    return out;
  }
  *out++ = static_cast<uint8_t>(red);
  *out++ = static_cast<uint8_t>(green);
  *out++ = static_cast<uint8_t>(blue);
  return out;
}

}  // namespace settrain
