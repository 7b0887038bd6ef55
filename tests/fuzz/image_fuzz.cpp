// The headers of images, and images decoded whole and in parts: parse_image_header() and decode_image().
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_header.h"
#include "tests/support/fuzzing.h"

using namespace settrain;
using test::must;

namespace {

constexpr int64_t kMostDecoded = 1 << 18;  // pixels; larger ones cost time and show nothing new

// Mends the checksums of a PNG's chunks, without which libpng would look at no changed byte.
void mend_checksums(std::vector<uint8_t>& png) {
  constexpr size_t kSignature = 8, kAround = 12;  // around a chunk's data: length, kind, checksum
  const auto number = [&](size_t at) {
    return uint32_t{png[at]} << 24 | uint32_t{png[at + 1]} << 16 | uint32_t{png[at + 2]} << 8 | png[at + 3];
  };
  for (size_t at = kSignature; at + kAround <= png.size();) {
    const size_t length = number(at);
    if (length > png.size() - at - kAround) return;
    const auto sum = static_cast<uint32_t>(crc32(0, png.data() + at + 4, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) png[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += length + kAround;
  }
}

// Decodes the part that `choose` returns into memory that holds something else; false where the bytes are refused.
bool decode(std::span<const uint8_t> bytes, const DecodeOptions& options, uint8_t something_else,
            const ChoosePart& choose, ImagePart& part) {
  part.pixels.pixels.assign(part.pixels.pixels.size(), something_else);
  try {
    decode_image(
        bytes, options,
        [&](int64_t height, int64_t width) {
          must(height > 0 && width > 0 && height * width <= kMostPixels, "the size is one that is decoded");
          if (height * width > kMostDecoded) throw std::runtime_error("too large for this test");
          return choose(height, width);
        },
        part);
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

// A box within height x width.
Box random_box(std::minstd_rand& random, int64_t height, int64_t width) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Box box{.top = below(height), .left = below(width)};
  box.height = 1 + below(height - box.top);
  box.width = 1 + below(width - box.left);
  return box;
}

void check_part(const Image& whole, const Box& box, const ImagePart& part) {
  const Image& pixels = part.pixels;
  must(pixels.channels == whole.channels, "the channels are those asked for");
  must(std::ssize(pixels.pixels) == pixels.height * pixels.width * pixels.channels, "there are as many pixels");
  must(part.top >= 0 && part.left >= 0 && part.top + pixels.height <= whole.height &&
           part.left + pixels.width <= whole.width,
       "the part lies within the image");
  must(part.top <= box.top && part.left <= box.left && part.top + pixels.height >= box.top + box.height &&
           part.left + pixels.width >= box.left + box.width,
       "the part holds what was asked for");
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    const auto in_part = ((y - part.top) * pixels.width + box.left - part.left) * pixels.channels;
    const auto in_whole = (y * whole.width + box.left) * whole.channels;
    must(std::equal(pixels.pixels.begin() + in_part, pixels.pixels.begin() + in_part + box.width * pixels.channels,
                    whole.pixels.begin() + in_whole),
         "its pixels are those of the whole image");
  }
}

void fuzz_parts(std::span<const uint8_t> bytes, const DecodeOptions& options, const ImageHeader& header,
                std::minstd_rand& random) {
  const ChoosePart all = [](int64_t height, int64_t width) { return Box{0, 0, height, width}; };
  ImagePart whole, part;
  const bool is_decoded = decode(bytes, options, 0, all, whole);
  if (is_decoded) {
    const bool is_tiff = header.format == ImageFormat::kTiff;  // turned by a field that the header's reader skips
    const bool is_swapped =
        is_tiff ? whole.pixels.height != header.height : options.apply_orientation && header.orientation >= 5;
    must(whole.top == 0 && whole.left == 0, "the whole image starts at its corner");
    must(whole.pixels.height == (is_swapped ? header.width : header.height) &&
             whole.pixels.width == (is_swapped ? header.height : header.width),
         "the header says the size");
    check_part(whole.pixels, {0, 0, whole.pixels.height, whole.pixels.width}, whole);
    must(decode(bytes, options, 0, all, part), "what is decoded once is decoded again");
    must(decode(bytes, options, 0xFF, all, part) && part.pixels.pixels == whole.pixels.pixels,
         "the pixels do not depend on what the memory held");
  }
  for (int i = 0; i < 3; ++i) {
    Box box;
    const ChoosePart choose = [&](int64_t height, int64_t width) { return box = random_box(random, height, width); };
    if (decode(bytes, options, 0xFF, choose, part) && is_decoded) check_part(whole.pixels, box, part);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  const ImageHeader header = parse_image_header(bytes);
  must(header.height >= 0 && header.width >= 0 && (header.height == 0) == (header.width == 0),
       "a size is known or not");
  must(header.orientation >= 1 && header.orientation <= 8, "an orientation is one of EXIF's");
  must(!name_of(header.format).empty(), "every format has a name");
  if (header.height > 0 && header.width > kMostDecoded / header.height) return 0;
  if (header.format == ImageFormat::kPng) mend_checksums(bytes);
  std::minstd_rand random(
      static_cast<uint32_t>(std::hash<std::string_view>()({reinterpret_cast<const char*>(data), size})));
  fuzz_parts(bytes, {.channels = 3}, header, random);
  fuzz_parts(bytes, {.channels = 1, .apply_orientation = true}, header, random);
  return 0;
}
