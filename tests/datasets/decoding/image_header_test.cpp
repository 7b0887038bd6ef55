#include "datasets/decoding/image_header.h"

#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"

using namespace settrain;
using namespace std::string_literals;

namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

ImageHeader parse(const std::string& text) {
  return parse_image_header(bytes_of(text));
}

// A number of `size` bytes.
std::string big(uint32_t value, int size) {
  std::string text;
  for (int i = size - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string little(uint32_t value, int size) {
  const std::string text = big(value, size);
  return {text.rbegin(), text.rend()};
}

void check(const ImageHeader& header, ImageFormat format, int64_t height, int64_t width) {
  CHECK(name_of(header.format) == name_of(format));
  CHECK(header.height == height);
  CHECK(header.width == width);
  CHECK(header.orientation == 1);
}

nlohmann::json odd_images() {
  return nlohmann::json::parse(test::read_file(test::golden_path("images_odd/odd.json"))).at("images");
}

std::string odd_image(const nlohmann::json& image) {
  return test::read_file(test::golden_path("images_" + image.at("file").get<std::string>()));
}

// An image of 37 rows and 53 columns, encoded by OpenCV.
Bytes encoded(const std::string& ending, const std::vector<int>& flags = {}) {
  cv::Mat image(37, 53, CV_8UC3);
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) image.at<cv::Vec3b>(y, x) = cv::Vec3b(y * 6, x * 4, (x * y) % 251);
  }
  Bytes bytes;
  cv::imencode(ending, image, bytes, flags);
  return bytes;
}

// The first directory of a TIFF, or of an EXIF block: fields of (tag, type, value).
std::string tiff(bool is_big, const std::vector<std::array<uint32_t, 3>>& fields) {
  const auto number = is_big ? big : little;
  std::string text = (is_big ? "MM\0*"s : "II*\0"s) + number(8, 4) + number(static_cast<uint32_t>(fields.size()), 2);
  for (const auto& [tag, type, value] : fields) {
    text += number(tag, 2) + number(type, 2) + number(1, 4);
    text += type == 3 ? number(value, 2) + "\0\0"s : number(value, 4);
  }
  return text + number(0, 4);
}

// The same as a BigTIFF, whose counts and offsets have 64 bits.
std::string big_tiff(bool is_big, const std::vector<std::array<uint32_t, 3>>& fields) {
  const auto number = is_big ? big : little;
  const auto long_number = [&](uint32_t value) {
    return is_big ? number(0, 4) + number(value, 4) : number(value, 4) + number(0, 4);
  };
  std::string text = (is_big ? "MM\0+"s : "II+\0"s) + number(8, 2) + number(0, 2) + long_number(16);
  text += long_number(static_cast<uint32_t>(fields.size()));
  for (const auto& [tag, type, value] : fields) {
    text += number(tag, 2) + number(type, 2) + long_number(1);
    text += type == 3 ? number(value, 2) + std::string(6, '\0') : number(value, 4) + std::string(4, '\0');
  }
  return text + long_number(0);
}

std::string segment(char marker, const std::string& content) {
  return "\xFF"s + marker + big(static_cast<uint32_t>(content.size() + 2), 2) + content;
}

std::string frame(char marker, uint32_t height, uint32_t width) {
  return segment(marker, "\x08"s + big(height, 2) + big(width, 2) + "\x01\x01\x11\x00"s);
}

std::string bmp(uint32_t length, const std::string& sizes) {
  return "BM"s + std::string(12, '\0') + little(length, 4) + sizes + std::string(100, '\0');
}

std::string webp(const std::string& kind, const std::string& data) {
  return "RIFF"s + little(100, 4) + "WEBP" + kind + little(static_cast<uint32_t>(data.size()), 4) + data;
}

}  // namespace

TEST_CASE("The sizes of odd images are those that Pillow finds") {
  int known = 0;
  for (const auto& image : odd_images()) {
    const std::string file = image.at("file");
    CAPTURE(file);
    const ImageHeader header = parse(odd_image(image));
    if (image.contains("width")) {
      ++known;
      CHECK(header.height == image.at("height"));
      CHECK(header.width == image.at("width"));
    }
    if (image.contains("after_exif_transpose")) {
      CHECK(std::to_string(header.orientation) + ".jpg" == file.substr(file.size() - 5));
      CHECK((header.orientation >= 5) == (image["after_exif_transpose"]["width"] == header.height));
    }
  }
  CHECK(known > 20);
}

TEST_CASE("Images that lie about themselves, are cut short or none at all") {
  const auto odd = [](const std::string& name) {
    return parse(test::read_file(test::golden_path("images_odd/" + name)));
  };
  check(odd("png_named_jpg.jpg"), ImageFormat::kPng, 37, 53);
  check(odd("declares_20000x20000.jpg"), ImageFormat::kJpeg, 20000, 20000);
  check(odd("declares_0_wide.jpg"), ImageFormat::kJpeg, 0, 0);
  check(odd("truncated.jpg"), ImageFormat::kJpeg, 37, 53);
  check(odd("text.jpg"), ImageFormat::kUnknown, 0, 0);
  check(odd("empty.jpg"), ImageFormat::kUnknown, 0, 0);
}

TEST_CASE("What OpenCV writes") {
  check(parse_image_header(encoded(".jpg")), ImageFormat::kJpeg, 37, 53);
  check(parse_image_header(encoded(".png")), ImageFormat::kPng, 37, 53);
  check(parse_image_header(encoded(".bmp")), ImageFormat::kBmp, 37, 53);
  check(parse_image_header(encoded(".tiff")), ImageFormat::kTiff, 37, 53);
  check(parse_image_header(encoded(".webp", {cv::IMWRITE_WEBP_QUALITY, 50})), ImageFormat::kWebp, 37, 53);
  check(parse_image_header(encoded(".webp", {cv::IMWRITE_WEBP_QUALITY, 101})), ImageFormat::kWebp, 37, 53);  // VP8L
}

TEST_CASE("JPEG: every kind of frame, fill bytes, garbage, and tables that are no frame") {
  for (int marker = 0xC0; marker <= 0xCF; ++marker) {
    CAPTURE(marker);
    const bool is_frame = marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    const auto header = parse("\xFF\xD8" + frame(static_cast<char>(marker), 300, 400));
    check(header, ImageFormat::kJpeg, is_frame ? 300 : 0, is_frame ? 400 : 0);
  }
  const std::string start = "\xFF\xD8" + segment('\xE0', "JFIF\0....."s) + segment('\xC4', std::string(9, '\xFF'));
  check(parse(start + "\xFF\xFF\xFF" + frame('\xC0', 7, 9)), ImageFormat::kJpeg, 7, 9);
  check(parse(start + "garbage" + frame('\xC0', 7, 9)), ImageFormat::kJpeg, 7, 9);
  for (const char length : {'\0', '\1'}) {  // less than the length's own two bytes: an empty segment, as in libjpeg
    check(parse(start + "\xFF\xEE\0"s + length + frame('\xC0', 7, 9)), ImageFormat::kJpeg, 7, 9);
  }
  check(parse(start + segment('\xDA', "scan") + frame('\xC0', 7, 9)), ImageFormat::kJpeg, 0, 0);
  check(parse(start + "\xFF\xD9" + frame('\xC0', 7, 9)), ImageFormat::kJpeg, 0, 0);
  // A thumbnail in a segment has a frame of its own.
  const std::string thumbnail = segment('\xE1', "Exif\0\0"s + "\xFF\xD8" + frame('\xC0', 1, 2));
  check(parse("\xFF\xD8" + thumbnail + frame('\xC2', 7, 9)), ImageFormat::kJpeg, 7, 9);
}

TEST_CASE("EXIF orientation, in both byte orders") {
  const auto orientation = [](const std::string& block) {
    return parse("\xFF\xD8" + segment('\xE1', block) + frame('\xC0', 7, 9)).orientation;
  };
  for (const bool is_big : {false, true}) {
    for (uint32_t value = 1; value <= 8; ++value) {
      CHECK(orientation("Exif\0\0"s + tiff(is_big, {{271, 3, 5}, {274, 3, value}})) == static_cast<int>(value));
    }
    CHECK(orientation("Exif\0\0"s + tiff(is_big, {{274, 4, 6}})) == 6);
    CHECK(orientation("Exif\0\0"s + tiff(is_big, {{274, 3, 0}})) == 1);
    CHECK(orientation("Exif\0\0"s + tiff(is_big, {{274, 3, 9}})) == 1);
    CHECK(orientation("Exif\0\0"s + tiff(is_big, {{274, 2, 6}})) == 1);
  }
  CHECK(orientation("http://ns.adobe.com/xap/1.0/\0<x/>"s) == 1);
  CHECK(orientation("Exif\0\0"s) == 1);
  // XMP has the same marker: the EXIF block behind it counts.
  const std::string xmp = segment('\xE1', "http://ns.adobe.com/xap/1.0/\0<x/>"s);
  const std::string exif = segment('\xE1', "Exif\0\0"s + tiff(true, {{274, 3, 3}}));
  CHECK(parse("\xFF\xD8" + xmp + exif + frame('\xC0', 7, 9)).orientation == 3);
}

TEST_CASE(
    "EXIF orientation of PNG, on either side of the pixels, and of WebP with and without the name of JPEGs' blocks") {
  const auto chunk = [](const std::string& name, const std::string& data) {
    return big(static_cast<uint32_t>(data.size()), 4) + name + data + "sums";
  };
  const std::string header = chunk("IHDR", big(9, 4) + big(7, 4) + "\x08\x02\0\0\0"s), pixels = chunk("IDAT", "many");
  for (const bool is_big : {false, true}) {
    const std::string exif = tiff(is_big, {{274, 3, 6}});
    for (const std::string& chunks : {header + chunk("eXIf", exif) + pixels, header + pixels + chunk("eXIf", exif)}) {
      const ImageHeader found = parse("\x89PNG\r\n\x1A\n" + chunks);
      CHECK((found.height == 7 && found.width == 9 && found.orientation == 6));
    }
    for (const std::string& name : {""s, "Exif\0\0"s}) {
      const std::string data = name + exif;
      const std::string odd = "VP8 " + little(3, 4) + "abc\0"s;  // a chunk of an odd length
      const ImageHeader found = parse(webp("VP8X", std::string(4, '\0') + little(8, 3) + little(6, 3)) + odd + "EXIF" +
                                      little(static_cast<uint32_t>(data.size()), 4) + data);
      CHECK((found.height == 7 && found.width == 9 && found.orientation == 6));
    }
  }
  CHECK(parse("\x89PNG\r\n\x1A\n" + header + chunk("eXIf", "Exif") + pixels).orientation == 1);
  CHECK(parse("\x89PNG\r\n\x1A\n" + header + big(0xFFFFFFFF, 4) + "eXIf").orientation == 1);
}

TEST_CASE("BMP: Windows' and OS/2's headers, rows from the top") {
  check(parse(bmp(12, little(60000, 2) + little(40000, 2))), ImageFormat::kBmp, 40000, 60000);
  for (const uint32_t length : {16, 40, 52, 56, 64, 108, 124}) {
    check(parse(bmp(length, little(9, 4) + little(7, 4))), ImageFormat::kBmp, 7, 9);
  }
  check(parse(bmp(40, little(9, 4) + little(static_cast<uint32_t>(-7), 4))), ImageFormat::kBmp, 7, 9);
  check(parse(bmp(40, little(9, 4) + little(0x80000000u, 4))), ImageFormat::kBmp, int64_t{1} << 31, 9);
  check(parse(bmp(40, little(static_cast<uint32_t>(-9), 4) + little(7, 4))), ImageFormat::kBmp, 0, 0);
  check(parse("BMW makes cars, and this is no image"), ImageFormat::kUnknown, 0, 0);
}

TEST_CASE("WebP: lossy, lossless and extended") {
  const std::string lossy = "\x10\x02\x00\x9D\x01\x2A"s + little(0x4000 | 9, 2) + little(0xC000 | 7, 2);
  check(parse(webp("VP8 ", lossy)), ImageFormat::kWebp, 7, 9);
  check(parse(webp("VP8 ", "\x10\x02\x00 no start"s)), ImageFormat::kWebp, 0, 0);
  check(parse(webp("VP8L", "\x2F" + little(16383u | 6u << 14, 4))), ImageFormat::kWebp, 7, 16384);
  check(parse(webp("VP8X", "\0\0\0\0"s + little(8, 3) + little(99999, 3))), ImageFormat::kWebp, 100000, 9);
  check(parse(webp("VP8L", "\x2F\x01"s)), ImageFormat::kWebp, 0, 0);
}

TEST_CASE("TIFF: both byte orders, SHORT and LONG") {
  for (const bool is_big : {false, true}) {
    check(parse(tiff(is_big, {{254, 4, 0}, {256, 3, 9}, {257, 3, 7}})), ImageFormat::kTiff, 7, 9);
    check(parse(tiff(is_big, {{256, 4, 70000}, {257, 4, 80000}})), ImageFormat::kTiff, 80000, 70000);
    check(parse(tiff(is_big, {{256, 4, 9}})), ImageFormat::kTiff, 0, 0);
    check(parse((is_big ? "MM\0*"s : "II*\0"s) + "\xFF\xFF\xFF\xFF"), ImageFormat::kTiff, 0, 0);
    check(parse(big_tiff(is_big, {{256, 4, 70000}, {257, 3, 7}})), ImageFormat::kTiff, 7, 70000);
    check(parse((is_big ? "MM\0+\0\x08\0\0"s : "II+\0\x08\0\0\0"s) + std::string(8, '\xFF')), ImageFormat::kTiff, 0, 0);
  }
}

TEST_CASE("Nothing beyond the bytes is read, whatever they are: cut at every length, and with random flips") {
  std::vector<Bytes> images;
  for (const auto& image : odd_images()) images.push_back(bytes_of(odd_image(image)));
  for (const char* ending : {".jpg", ".png", ".bmp", ".tiff", ".webp"}) images.push_back(encoded(ending));
  for (const bool is_big : {false, true}) {
    images.push_back(bytes_of(tiff(is_big, {{256, 4, 9}, {257, 4, 7}})));
    images.push_back(bytes_of("\xFF\xD8" + segment('\xE1', "Exif\0\0"s + tiff(is_big, {{274, 3, 3}}))));
  }
  images.push_back(bytes_of(webp("VP8X", "\0\0\0\0"s + little(8, 3) + little(99999, 3))));

  std::mt19937 random(1);
  for (const Bytes& image : images) {
    for (size_t size = 0; size <= image.size(); ++size) {
      // A copy of just that size, for the address sanitiser.
      parse_image_header(Bytes(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    for (int repetition = 0; repetition < 500 && !image.empty(); ++repetition) {
      Bytes flipped = image;
      // Most flips where the numbers are that lead elsewhere: at the beginning.
      const size_t reach = repetition % 2 == 0 ? flipped.size() : std::min<size_t>(flipped.size(), 64);
      for (int flip = 0; flip < 4; ++flip) flipped[random() % reach] = static_cast<uint8_t>(random());
      const ImageHeader header = parse_image_header(flipped);
      CHECK(header.height >= 0);
      CHECK((header.height == 0) == (header.width == 0));
      CHECK((header.orientation >= 1 && header.orientation <= 8));
    }
  }
}
