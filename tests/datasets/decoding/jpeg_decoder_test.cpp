#include <algorithm>
#include <iterator>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>

#include "datasets/decoding/decode_image.h"
#include "src/core/random.h"
#include "tests/support/catch2.h"
#include "tests/support/image_part.h"

using namespace settrain;

namespace {

using Bytes = std::vector<uint8_t>;

// Blobs of colour and noise, so that every coefficient is used.
Bytes encoded(int height, int width, const std::vector<int>& parameters) {
  cv::Mat noise(height, width, CV_8UC3), blobs(5, 7, CV_8UC3);
  cv::RNG random(3);
  random.fill(blobs, cv::RNG::UNIFORM, 0, 256);
  random.fill(noise, cv::RNG::UNIFORM, 0, 60);
  cv::resize(blobs, blobs, {width, height});
  Bytes bytes;
  cv::imencode(".jpg", blobs + noise, bytes, parameters);
  return bytes;
}

// The first `scans` scans of a JPEG.
Bytes cut_behind(const Bytes& bytes, int scans) {
  constexpr uint8_t kScan[] = {0xFF, 0xDA}, kEnd[] = {0xFF, 0xD9};
  auto at = bytes.begin();
  for (int scan = 0; scan <= scans; ++scan) at = std::search(at + 1, bytes.end(), std::begin(kScan), std::end(kScan));
  Bytes cut(bytes.begin(), at);
  cut.insert(cut.end(), std::begin(kEnd), std::end(kEnd));
  return cut;
}

}  // namespace

TEST_CASE("a part of a JPEG has the pixels of the whole") {
  for (const auto& parameters :
       {std::vector<int>{}, {cv::IMWRITE_JPEG_PROGRESSIVE, 1}, {cv::IMWRITE_JPEG_RST_INTERVAL, 3}}) {
    const Bytes bytes = encoded(203, 301, parameters);
    const Image whole = test::decode_whole(bytes, 3);
    CHECK((whole.height == 203 && whole.width == 301));
    for (uint32_t i = 0; i < 200; ++i) test::check_part(bytes, whole, test::random_box(whole, i));
    const Image grey = test::decode_whole(bytes, 1);
    for (uint32_t i = 0; i < 20; ++i) test::check_part(bytes, grey, test::random_box(grey, i));
  }
}

TEST_CASE("a part of a progressive JPEG that lacks scans has the pixels of the whole") {
  const Bytes bytes = encoded(103, 151, {cv::IMWRITE_JPEG_PROGRESSIVE, 1});
  for (const int scans : {1, 2, 4}) {
    const Bytes cut = cut_behind(bytes, scans);
    const Image whole = test::decode_whole(cut, 3);
    CAPTURE(scans, cut.size(), bytes.size());
    for (uint32_t i = 0; i < 100; ++i) test::check_part(cut, whole, test::random_box(whole, i));
  }
}

TEST_CASE("less is decoded for a part") {
  ImagePart part;
  decode_jpeg(
      encoded(400, 400, {}), 3,
      [](int64_t, int64_t) {
        return Box{100, 200, 20, 30};
      },
      part);
  CHECK((part.top <= 100 && part.top >= 90 && part.pixels.height <= 30));
  CHECK((part.left <= 200 && part.left >= 176 && part.pixels.width <= 60));
}

TEST_CASE("what is no JPEG is an error with libjpeg's words") {
  ImagePart part;
  const auto decode = [&](const Bytes& bytes) {
    decode_jpeg(
        bytes, 3,
        [](int64_t h, int64_t w) {
          return Box{0, 0, h, w};
        },
        part);
  };
  CHECK_THROWS_WITH(decode({'n', 'o'}), Catch::Contains("Not a JPEG"));
  CHECK_THROWS_AS(decode({0xFF, 0xD8, 0xFF}), std::runtime_error);
  Bytes bytes = encoded(64, 64, {});
  for (uint32_t i = 0; i < 2000; ++i) {  // whatever is damaged: an error or a picture, and never a crash
    Bytes damaged = bytes;
    const auto random = random_words(5, Stream::kSynthetic, i);
    for (const uint32_t word : random) damaged[word % damaged.size()] = static_cast<uint8_t>(word >> 24);
    try {
      decode(damaged);
    } catch (const std::runtime_error&) {
    } catch (const std::bad_alloc&) {  // a size of gigabytes; decode_image() refuses it
    }
  }
}
