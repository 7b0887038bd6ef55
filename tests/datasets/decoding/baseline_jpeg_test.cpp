#include "datasets/decoding/baseline_jpeg.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/core/random.h"
#include "tests/support/catch2.h"
#include "tests/support/image_part.h"

using namespace settrain;

namespace {

using Bytes = std::vector<uint8_t>;

bool has_decoder() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

struct Style {
  int height, width, channels, across, down, quality, restart_interval;
  bool optimised, progressive = false;
};

// Smooth colours, edges and noise in turn, by the number.
uint8_t sample(uint32_t number, int y, int x, int c) {
  const uint32_t noise = random_words(number, Stream::kSynthetic, static_cast<uint32_t>(y * 4096 + x * 4 + c))[0];
  if (number % 3 == 0) return static_cast<uint8_t>(127 + 120 * std::sin(0.1 * y + 0.07 * x * (c + 1)) + noise % 8);
  if (number % 3 == 1) return noise % 2 == 0 ? 0 : 255;
  return static_cast<uint8_t>(noise % 256);
}

Bytes encoded(const Style& style, uint32_t number) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_height = static_cast<JDIMENSION>(style.height);
  jpeg.image_width = static_cast<JDIMENSION>(style.width);
  jpeg.input_components = style.channels;
  jpeg.in_color_space = style.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, style.quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = style.across;
  jpeg.comp_info[0].v_samp_factor = style.down;
  jpeg.restart_interval = static_cast<unsigned>(style.restart_interval);
  jpeg.optimize_coding = style.optimised;
  if (style.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  Bytes row(static_cast<size_t>(style.width * style.channels));
  for (int y = 0; y < style.height; ++y) {
    for (int i = 0; i < style.width * style.channels; ++i)
      row[static_cast<size_t>(i)] = sample(number, y, i / style.channels, i % style.channels);
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&jpeg, rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes bytes(buffer, buffer + size);
  std::free(buffer);
  return bytes;
}

// Calls use(jpeg) with a decompressor that has read the header.
template <class Use>
void with_header(const Bytes& bytes, const Use& use) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  use(jpeg);
  jpeg_destroy_decompress(&jpeg);
}

// The whole image, by libjpeg.
Image by_libjpeg(const Bytes& bytes, int64_t channels) {
  Image image;
  with_header(bytes, [&](jpeg_decompress_struct& jpeg) {
    jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    image = {jpeg.output_height, jpeg.output_width, channels, {}};
    const auto stride = static_cast<size_t>(image.width * channels);
    image.pixels.resize(static_cast<size_t>(image.height) * stride);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW rows[] = {image.pixels.data() + jpeg.output_scanline * stride};
      jpeg_read_scanlines(&jpeg, rows, 1);
    }
  });
  return image;
}

bool is_decoded(const Bytes& bytes, const Box& box, int64_t channels) {
  bool decoded = false;
  with_header(bytes, [&](const jpeg_decompress_struct& jpeg) {
    Image image;
    decoded = jpeg::decode_baseline(jpeg, box, channels, image);
  });
  return decoded;
}

// Checks that it decodes the file, and that parts have libjpeg's pixels.
void check(const Style& style, uint32_t number, int boxes) {
  CAPTURE(style.height, style.width, style.channels, style.across, style.down, style.quality, style.restart_interval);
  const Bytes bytes = encoded(style, number);
  for (const int64_t channels : {3, 1}) {
    const Image whole = by_libjpeg(bytes, channels);
    const Box all{0, 0, whole.height, whole.width};
    REQUIRE(is_decoded(bytes, all, channels) == has_decoder());
    test::check_part(bytes, whole, all);
    for (int i = 0; i < boxes; ++i)
      test::check_part(bytes, whole, test::random_box(whole, number + 97 * static_cast<uint32_t>(i)));
  }
}

}  // namespace

TEST_CASE("baseline JPEGs have libjpeg's pixels") {
  constexpr std::pair<int, int> kFactors[] = {{1, 1}, {2, 1}, {2, 2}};
  uint32_t number = 0;
  for (const auto& [across, down] : kFactors) {
    for (const int quality : {3, 75, 98, 100}) {
      for (const int restart_interval : {0, 1, 5}) {
        for (const auto& [height, width] : {std::pair(61, 95), {16, 32}, {5, 6}, {1, 7}, {90, 5}}) {
          ++number;
          check({height, width, 3, across, down, quality, restart_interval, number % 2 == 0}, number, 6);
        }
      }
    }
  }
  for (const int quality : {3, 90, 100}) {
    check({45, 77, 1, 1, 1, quality, 0, true}, 100, 6);
    check({45, 77, 1, 2, 2, quality, 2, false}, 101, 6);
  }
}

TEST_CASE("libjpeg decodes what is no baseline JPEG of the usual kinds, and what is damaged") {
  const Box box{0, 0, 20, 20};
  CHECK(is_decoded(encoded({40, 50, 3, 2, 2, 90, 0, false}, 2), box, 3) == has_decoder());
  CHECK_FALSE(is_decoded(encoded({40, 50, 3, 2, 2, 90, 0, false, true}, 2), box, 3));
  CHECK_FALSE(is_decoded(encoded({40, 50, 3, 1, 2, 90, 0, false}, 2), box, 3));
  CHECK_FALSE(is_decoded(encoded({40, 4, 3, 2, 2, 90, 0, false}, 2), {0, 0, 20, 4}, 3));

  // Missing bytes, in the box or in rows above it.
  Bytes bytes = encoded({64, 64, 3, 2, 2, 95, 0, false}, 2);
  bytes.erase(bytes.end() - 1500, bytes.end() - 2);
  CHECK_FALSE(is_decoded(bytes, {0, 0, 64, 64}, 3));
  CHECK_FALSE(is_decoded(bytes, {60, 0, 4, 4}, 3));
  CHECK(is_decoded(bytes, {0, 0, 4, 4}, 3) == has_decoder());

  // A byte of fill.
  bytes = encoded({64, 64, 3, 2, 2, 95, 0, false}, 2);
  bytes.insert(bytes.end() - 2, 0xFF);
  CHECK_FALSE(is_decoded(bytes, {0, 0, 64, 64}, 3));

  // A restart marker out of turn, and one with a byte too many before it.
  const Bytes intact = encoded({64, 64, 3, 2, 2, 95, 2, false}, 2);
  const auto second = [](const Bytes& in) {
    constexpr uint8_t kMarker[] = {0xFF, 0xD1};
    return std::search(in.begin(), in.end(), std::begin(kMarker), std::end(kMarker));
  };
  REQUIRE(second(intact) != intact.end());
  CHECK(is_decoded(intact, {0, 0, 64, 64}, 3) == has_decoder());
  bytes = intact;
  bytes[static_cast<size_t>(second(intact) - intact.begin()) + 1] = 0xD2;
  CHECK_FALSE(is_decoded(bytes, {0, 0, 64, 64}, 3));
  bytes = intact;
  bytes.insert(bytes.begin() + (second(intact) - intact.begin()), 0x55);
  CHECK_FALSE(is_decoded(bytes, {0, 0, 64, 64}, 3));
}

TEST_CASE("what a damaged file has is libjpeg's, or is left to it") {
  int decoded = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    // Coarse steps, so that few wrong bits make numbers that do not fit; and blocks with many numbers of short codes.
    const int quality = i % 3 == 0 ? 90 : i % 2 == 0 ? 1 : 40;
    const bool optimised = i % 4 < 2;
    Bytes bytes = encoded({40, 40, i % 5 == 0 ? 1 : 3, 1, 1, quality, 0, optimised}, i / 3 % 3);
    constexpr uint8_t kScan[] = {0xFF, 0xDA};
    const auto header =
        std::search(bytes.begin(), bytes.end(), std::begin(kScan), std::end(kScan)) - bytes.begin() + 14;
    const auto words = random_words(19, Stream::kSynthetic, i);
    const auto scan = static_cast<uint32_t>(std::ssize(bytes) - 2 - header);
    for (uint32_t flip = 0; flip <= i % 3; ++flip)
      bytes[static_cast<size_t>(header) + words[flip] % scan] ^=
          static_cast<uint8_t>(1U << (words[3] >> (3 * flip) & 7));
    if (!is_decoded(bytes, {0, 0, 40, 40}, 3)) continue;
    ++decoded;
    CAPTURE(i);
    const Image whole = by_libjpeg(bytes, 3);
    test::check_part(bytes, whole, {0, 0, 40, 40});
  }
  CHECK((decoded > 200 || !has_decoder()));

  // A scan that says that it is a progressive one's makes libjpeg warn.
  Bytes bytes = encoded({40, 50, 3, 2, 2, 90, 0, false}, 2);
  constexpr uint8_t kEnd[] = {0x00, 0x3F, 0x00};
  const auto end = std::search(bytes.begin(), bytes.end(), std::begin(kEnd), std::end(kEnd));
  REQUIRE(end != bytes.end());
  *(end + 1) = 0;
  CHECK_FALSE(is_decoded(bytes, {0, 0, 20, 20}, 3));
  ImagePart part;
  const std::string warning = decode_jpeg(
      bytes, 3,
      [](int64_t height, int64_t width) {
        return Box{0, 0, height, width};
      },
      part);
  CHECK(warning != "");
}
