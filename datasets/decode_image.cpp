#include "datasets/decode_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string_view>
#include <vector>

#include "src/core/error.h"

namespace settrain {
namespace {

// Whether a JPEG goes on to its end marker. The decoder fills what is missing with grey and only mutters. The segments
// before the pixels are skipped by their lengths, since a thumbnail in one of them has an end marker of its own.
bool jpeg_is_cut_short(const std::vector<uint8_t>& bytes) {
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == 0xFF && bytes[at + 1] != 0xDA) {
    at += 2 + (size_t{bytes[at + 2]} << 8 | bytes[at + 3]);
  }
  constexpr uint8_t kEnd[] = {0xFF, 0xD9};
  const auto pixels = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at, bytes.size()));
  return std::search(pixels, bytes.end(), std::begin(kEnd), std::end(kEnd)) == bytes.end();
}

bool is_jpeg(const std::vector<uint8_t>& bytes) {
  return bytes.size() > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8;
}

std::vector<uint8_t> read_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream) throw DataError(fmt::format("cannot read '{}'", file.string()));
  return bytes;
}

Image to_image(const cv::Mat& mat) {
  Image image{mat.rows, mat.cols, mat.channels(), {}};
  image.pixels.reserve(mat.total() * mat.elemSize());
  for (int y = 0; y < mat.rows; ++y) {
    image.pixels.insert(image.pixels.end(), mat.ptr(y), mat.ptr(y) + static_cast<size_t>(mat.cols) * mat.elemSize());
  }
  return image;
}

}  // namespace

Image decode_image(const std::filesystem::path& file, int64_t channels) {
  const std::vector<uint8_t> bytes = read_bytes(file);
  const auto fail = [&](std::string_view what) {
    throw DataError(fmt::format("'{}': {}. Replace or remove the file", file.string(), what));
  };
  if (bytes.empty()) fail("the file is empty");
  if (is_jpeg(bytes) && jpeg_is_cut_short(bytes)) fail("the JPEG is cut short");
  cv::Mat decoded;
  try {
    const int mode = (channels == 1 ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR) | cv::IMREAD_IGNORE_ORIENTATION;
    decoded = cv::imdecode(bytes, mode);
    if (channels == 3 && !decoded.empty()) cv::cvtColor(decoded, decoded, cv::COLOR_BGR2RGB);
  } catch (const cv::Exception& error) {
    fail("cannot be decoded (" + error.err + ")");
  }
  if (decoded.empty()) fail("is no image that can be decoded");
  return to_image(decoded);
}

}  // namespace settrain
