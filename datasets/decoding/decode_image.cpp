#include "datasets/decoding/decode_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <opencv2/core.hpp>
#include <opencv2/core/utility.hpp>
#include <stdexcept>

#include "datasets/decoding/image_decoders.h"
#include "datasets/decoding/image_header.h"

namespace settrain {
namespace {

// Whether a JPEG lacks its end marker. The decoder fills missing pixels with grey and only warns. The segments before
// the pixels are skipped by their lengths, since a thumbnail in one of them has an end marker of its own.
bool jpeg_is_cut_short(std::span<const uint8_t> bytes) {
  constexpr uint8_t kEnd[] = {0xFF, 0xD9};
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == 0xFF && bytes[at + 1] != 0xDA) {
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xFF) {  // fill
      ++at;
    } else if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // without a length
      at += 2;
    } else {
      at += 2 + (size_t{bytes[at + 2]} << 8 | bytes[at + 3]);
    }
  }
  const auto pixels = bytes.subspan(std::min(at, bytes.size()));
  // The marker is usually at the end, but trailing bytes are not rare.
  if (pixels.size() >= 2 && std::equal(pixels.end() - 2, pixels.end(), kEnd)) return false;
  return std::search(pixels.begin(), pixels.end(), std::begin(kEnd), std::end(kEnd)) == pixels.end();
}

void check_size(int64_t height, int64_t width) {
  if (height <= kMostPixels && width <= kMostPixels && height * width <= kMostPixels) return;
  throw std::runtime_error(
      fmt::format("declares {}x{} pixels, more than the {} that are decoded", width, height, kMostPixels));
}

// Turns and mirrors an image upright from the EXIF orientation `orientation` (2 to 8).
void orient(int orientation, Image& image) {
  const cv::Mat lying(static_cast<int>(image.height), static_cast<int>(image.width),
                      CV_8UC(static_cast<int>(image.channels)), image.pixels.data());
  cv::Mat upright = lying.clone();
  if (orientation >= 5) cv::transpose(lying, upright);
  constexpr int kNone = 2, kVertically = 0, kHorizontally = 1, kBoth = -1;
  constexpr int kFlips[] = {kNone, kHorizontally, kBoth, kVertically, kNone, kHorizontally, kBoth, kVertically};
  if (const int flip = kFlips[orientation - 1]; flip != kNone) cv::flip(upright, upright, flip);
  image.height = upright.rows;
  image.width = upright.cols;
  std::copy_n(upright.data, image.pixels.size(), image.pixels.begin());
}

Box whole(int64_t height, int64_t width) {
  check_size(height, width);
  return {0, 0, height, width};
}

// Decodes the part of a JPEG that is needed.
std::string decode_jpeg_part(std::span<const uint8_t> bytes, const DecodeOptions& options, int orientation,
                             const ChoosePart& choose, ImagePart& part) {
  if (jpeg_is_cut_short(bytes)) throw std::runtime_error("the JPEG is cut short");
  const auto choose_small = [&](int64_t height, int64_t width) {
    check_size(height, width);
    return choose(height, width);
  };
  if (!options.apply_orientation || orientation == 1) return decode_jpeg(bytes, options.channels, choose_small, part);
  std::string warning = decode_jpeg(bytes, options.channels, whole, part);
  orient(orientation, part.pixels);
  choose(part.pixels.height, part.pixels.width);
  return warning;
}

std::string decode(std::span<const uint8_t> bytes, const DecodeOptions& options, const ChoosePart& choose,
                   ImagePart& part) {
  if (bytes.empty()) throw std::runtime_error("the file is empty");
  const ImageHeader header = parse_image_header(bytes);
  if (header.format == ImageFormat::kUnknown) throw std::runtime_error("is no JPEG, PNG, BMP, WebP or TIFF image");
  if (header.format == ImageFormat::kJpeg) return decode_jpeg_part(bytes, options, header.orientation, choose, part);
  if (header.height == 0) throw std::runtime_error(fmt::format("the {} has no size", name_of(header.format)));
  check_size(header.height, header.width);
  part.top = part.left = 0;
  std::string warning;
  int orientation = options.apply_orientation ? header.orientation : 1;
  switch (header.format) {
    case ImageFormat::kPng:
      warning = decode_png(bytes, header, options.channels, part.pixels);
      break;
    case ImageFormat::kWebp:
      decode_webp(bytes, header, options.channels, part.pixels);
      break;
    case ImageFormat::kTiff:
      warning = decode_tiff(bytes, header, options.channels, part.pixels, orientation);
      break;
    case ImageFormat::kBmp:
      decode_bmp(bytes, header, options.channels, part.pixels);
      break;
    case ImageFormat::kJpeg:
    case ImageFormat::kUnknown:
      break;
  }
  if (orientation > 1) orient(orientation, part.pixels);
  choose(part.pixels.height, part.pixels.width);
  return warning;
}

}  // namespace

std::string decode_image(std::span<const uint8_t> bytes, const DecodeOptions& options, const ChoosePart& choose,
                         ImagePart& part) {
  try {
    return decode(bytes, options, choose, part);
  } catch (const cv::Exception& error) {
    throw std::runtime_error("cannot be decoded (" + error.err + ")");
  }
}

void prepare_decoding() {
  // OpenCV's own threads would compete with the compute threads. Several threads read images at a time anyway.
  cv::setNumThreads(1);
}

std::map<std::string, std::string> image_library_versions() {
  return {{"opencv", cv::getVersionString()},
          {"libjpeg-turbo", jpeg_library_version()},
          {"libpng", png_library_version()},
          {"libtiff", tiff_library_version()},
          {"libwebp", webp_library_version()}};
}

}  // namespace settrain
