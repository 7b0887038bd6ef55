// What an image file says of itself before its pixels: format, size, orientation. Nothing is decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace settrain {

enum class ImageFormat { kJpeg, kPng, kBmp, kWebp, kTiff, kUnknown };

/// "JPEG", "PNG", "BMP", "WebP", "TIFF", "unknown".
std::string_view name_of(ImageFormat format);

/// Height and width in pixels as they are stored, before any rotation; both 0 where they are not known.
struct ImageHeader {
  ImageFormat format = ImageFormat::kUnknown;
  int64_t height = 0, width = 0;
  int orientation = 1;  // of a JPEG's EXIF block, 1 to 8: 1 is upright, 5 to 8 swap height and width
};

/// Reads the header of a JPEG, PNG, BMP, WebP or TIFF image, told by its content. `bytes` are the file's, or its first
/// ones: what lies behind them (the directory of a TIFF, a JPEG's size behind long comments) is not known. Never fails,
/// whatever the bytes.
ImageHeader parse_image_header(std::span<const uint8_t> bytes);

}  // namespace settrain
