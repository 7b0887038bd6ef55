// The format, size and orientation of an image file, from its header. No pixels are decoded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace settrain {

enum class ImageFormat { kJpeg, kPng, kBmp, kWebp, kTiff, kUnknown };

/// "JPEG", "PNG", "BMP", "WebP", "TIFF", "unknown".
std::string_view name_of(ImageFormat format);

/// Height and width in pixels as stored, before any rotation; both are 0 where they are unknown.
struct ImageHeader {
  ImageFormat format = ImageFormat::kUnknown;
  int64_t height = 0, width = 0;
  int orientation = 1;  // of the EXIF block of a JPEG, PNG or WebP, 1 to 8: 1 is upright, 5 to 8 swap height and width
};

/// Reads the header of a JPEG, PNG, BMP, WebP or TIFF image, which is recognised by its content. `bytes` are the whole
/// file or its first bytes. Data behind them are unknown: the size may be in the directory of a TIFF, or behind
/// long comments of a JPEG, and the orientation behind the pixels of a PNG or WebP. Never fails, whatever the bytes.
ImageHeader parse_image_header(std::span<const uint8_t> bytes);

/// The header of an image file, of which no more is read than it takes; none where the file cannot be read.
std::optional<ImageHeader> read_image_header(const std::filesystem::path& file);

}  // namespace settrain
