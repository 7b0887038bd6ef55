// Files of each format that are cut short or changed, and warnings of the libraries that decode them.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <random>
#include <stdexcept>

#include "datasets/decoding/decode_image.h"
#include "datasets/image_files.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

using Bytes = std::vector<uint8_t>;

// Blobs of colour with noise, encoded by OpenCV.
Bytes encoded_noise(const std::string& ending, const std::vector<int>& flags, int height = 40, int width = 50) {
  cv::Mat noise(height, width, CV_8UC3), blobs(5, 7, CV_8UC3);
  cv::RNG random(3);
  random.fill(blobs, cv::RNG::UNIFORM, 0, 256);
  random.fill(noise, cv::RNG::UNIFORM, 0, 60);
  cv::resize(blobs, blobs, {width, height});
  Bytes bytes;
  cv::imencode(ending, blobs + noise, bytes, flags);
  return bytes;
}

struct Encoding {
  std::string name, ending;
  std::vector<int> flags;
};

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = {
      {"PNG", ".png", {}},
      {"BMP", ".bmp", {}},
      {"lossy WebP", ".webp", {cv::IMWRITE_WEBP_QUALITY, 60}},
      {"lossless WebP", ".webp", {cv::IMWRITE_WEBP_QUALITY, 101}},
      {"LZW TIFF", ".tiff", {cv::IMWRITE_TIFF_COMPRESSION, 5}},
      {"Deflate TIFF", ".tiff", {cv::IMWRITE_TIFF_COMPRESSION, 8}},
      {"uncompressed TIFF", ".tiff", {cv::IMWRITE_TIFF_COMPRESSION, 1}},
  };
  return all;
}

void append(Bytes& bytes, uint32_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

constexpr uint32_t kShort = 3, kLong = 4;

// Appends the directory of a TIFF: tag, type, count, and value or offset of each field.
void append_directory(Bytes& bytes, const std::vector<std::array<uint32_t, 4>>& fields) {
  append(bytes, static_cast<uint32_t>(fields.size()), 2);
  for (const auto& [tag, type, count, value] : fields) {
    append(bytes, tag, 2);
    append(bytes, type, 2);
    append(bytes, count, 4);
    append(bytes, value, 4);
  }
  append(bytes, 0, 4);
}

// A grey TIFF of 4 x `height` pixels whose rows are strips that all have the same Deflate data: `unpacked` zeros.
Bytes tiff_of_one_stream(uint32_t height, size_t unpacked) {
  const Bytes zeros(unpacked);
  uLongf packed_size = compressBound(unpacked);
  Bytes packed(packed_size);
  REQUIRE(compress2(packed.data(), &packed_size, zeros.data(), zeros.size(), 9) == Z_OK);
  packed.resize(packed_size);
  constexpr uint32_t kHeader = 8;
  const auto offsets = kHeader + static_cast<uint32_t>(packed_size), counts = offsets + 4 * height;
  Bytes bytes{'I', 'I', 42, 0};
  append(bytes, counts + 4 * height, 4);  // of the directory
  bytes.insert(bytes.end(), packed.begin(), packed.end());
  for (uint32_t i = 0; i < height; ++i) append(bytes, kHeader, 4);
  for (uint32_t i = 0; i < height; ++i) append(bytes, static_cast<uint32_t>(packed_size), 4);
  append_directory(bytes, {{256, kShort, 1, 4},
                           {257, kLong, 1, height},
                           {258, kShort, 1, 8},
                           {259, kShort, 1, 8},
                           {262, kShort, 1, 1},
                           {273, kLong, height, offsets},
                           {277, kShort, 1, 1},
                           {278, kLong, 1, 1},
                           {279, kLong, height, counts}});
  return bytes;
}

// An uncompressed TIFF of 2 x 2 pixels with three samples of 8 bits.
Bytes tiff_of_colours(uint32_t photometric) {
  constexpr uint32_t kHeader = 8, kPixels = 12, kBits = 6;
  Bytes bytes{'I', 'I', 42, 0};
  append(bytes, kHeader + kPixels + kBits, 4);  // of the directory
  bytes.resize(kHeader + kPixels, 100);
  for (int i = 0; i < 3; ++i) append(bytes, 8, 2);
  append_directory(bytes, {{256, kShort, 1, 2},
                           {257, kShort, 1, 2},
                           {258, kShort, 3, kHeader + kPixels},
                           {259, kShort, 1, 1},
                           {262, kShort, 1, photometric},
                           {273, kLong, 1, kHeader},
                           {277, kShort, 1, 3},
                           {278, kShort, 1, 2},
                           {279, kLong, 1, kPixels}});
  return bytes;
}

void decode_all(const Bytes& bytes) {
  ImagePart part;
  decode_image(
      bytes, {},
      [](int64_t height, int64_t width) {
        return Box{0, 0, height, width};
      },
      part);
}

bool is_refused(const Bytes& bytes) {
  try {
    decode_all(bytes);
    return false;
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).size() > 5);
    return true;
  }
}

}  // namespace

TEST_CASE("a file that is cut short is refused, wherever it is cut") {
  for (const Encoding& encoding : encodings()) {
    CAPTURE(encoding.name);
    const Bytes whole = encoded_noise(encoding.ending, encoding.flags);
    CHECK_FALSE(is_refused(whole));
    std::vector<size_t> accepted;
    for (size_t size = 0; size < whole.size(); size += size < 200 || size + 200 > whole.size() ? 1 : 7) {
      if (!is_refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)})) accepted.push_back(size);
    }
    CHECK(accepted == std::vector<size_t>{});
  }
}

TEST_CASE("the error of a damaged file names it") {
  const test::TemporaryFolder folder;
  for (const Encoding& encoding : encodings()) {
    CAPTURE(encoding.name);
    const Bytes bytes = encoded_noise(encoding.ending, encoding.flags);
    const std::string name = "half" + encoding.ending;
    folder.write(name, std::span(reinterpret_cast<const char*>(bytes.data()), bytes.size() / 2));
    FileTable table(folder.path());
    table.add(name);
    const ImageFiles files(std::move(table), {});
    Image image;
    CHECK_THROWS_AS(files.read(0, image), DataError);
    CHECK_THROWS_WITH(files.read(0, image), Contains(name));
  }
}

TEST_CASE("any changed byte of a PNG is noticed") {
  const Bytes whole = encoded_noise(".png", {}, 9, 11);
  std::vector<size_t> accepted;
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= 0x10;
    if (!is_refused(changed)) accepted.push_back(at);
  }
  CHECK(accepted == std::vector<size_t>{});
}

TEST_CASE("damage in the middle of a compressed TIFF is noticed") {
  for (const int compression : {5, 8}) {
    CAPTURE(compression);
    Bytes bytes = encoded_noise(".tiff", {cv::IMWRITE_TIFF_COMPRESSION, compression}, 64, 64);
    const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
    std::fill(middle, middle + 200, uint8_t{0});
    CHECK(is_refused(bytes));
  }
}

TEST_CASE("streams that unpack to far more than the image has are refused, and not unpacked") {
  CHECK_FALSE(is_refused(tiff_of_one_stream(3, 4)));
  CHECK_FALSE(is_refused(tiff_of_one_stream(3, 400)));
  const Bytes bytes = tiff_of_one_stream(20000, 3'900'000);
  const std::clock_t start = std::clock();
  CHECK(is_refused(bytes));
  CHECK(std::clock() - start < 20 * CLOCKS_PER_SEC);  // wholly unpacked, 78 GB would take more than a minute
}

TEST_CASE("a TIFF of other colours than those documented is refused") {
  constexpr uint32_t kRgb = 2, kCielab = 8, kIcclab = 9, kItulab = 10, kColourFilters = 32803, kLogLuv = 32845;
  CHECK_FALSE(is_refused(tiff_of_colours(kRgb)));
  for (const uint32_t photometric : {kCielab, kIcclab, kItulab, kColourFilters, kLogLuv}) {
    CHECK_THROWS_WITH(decode_all(tiff_of_colours(photometric)), Contains(std::to_string(photometric)));
  }
}

TEST_CASE("whatever is changed, there is an error or an image") {
  std::mt19937 random(7);
  for (const Encoding& encoding : encodings()) {
    CAPTURE(encoding.name);
    const Bytes whole = encoded_noise(encoding.ending, encoding.flags);
    int64_t refused = 0;
    for (int repetition = 0; repetition < 300; ++repetition) {
      Bytes changed = whole;
      const size_t reach = repetition % 2 == 0 ? changed.size() : std::min<size_t>(changed.size(), 60);
      // The directory of a TIFF is at the end.
      const size_t from = repetition % 3 == 0 ? changed.size() - reach : 0;
      for (int i = 0; i < 3; ++i) changed[from + random() % reach] = static_cast<uint8_t>(random());
      try {
        refused += is_refused(changed);
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
    CHECK(refused > 50);
  }
}

TEST_CASE("a header that declares more pixels than are decoded is refused before memory is taken") {
  for (const char* ending : {".png", ".bmp"}) {
    CAPTURE(ending);
    Bytes bytes = encoded_noise(ending, {});
    const size_t width = ending == std::string(".png") ? 16 : 18;
    for (size_t i = 0; i < 8; ++i) bytes[width + i] = i % 4 == 1 || i % 4 == 2 ? 0x7F : 0;
    CHECK_THROWS_WITH(decode_all(bytes), Contains("pixels, more than the"));
  }
}

TEST_CASE("a library's warnings are logged once, with the first file, and counted") {
  const test::TemporaryFolder folder;
  log::open_file(folder / "log.txt");
  {
    // Bytes between the first segment and the next one: libjpeg skips them and warns.
    const std::string sound = test::read_file(test::golden_path("images_odd/gray.jpg"));
    const size_t segment = 4 + static_cast<uint8_t>(sound[4]) * 256u + static_cast<uint8_t>(sound[5]);
    const std::string odd = sound.substr(0, segment) + "garbage" + sound.substr(segment);
    for (const char* name : {"sound.jpg", "odd.jpg"}) folder.write(name, std::span(name[0] == 's' ? sound : odd));
    folder.write("odd_too.jpg", std::span(odd));
    FileTable table(folder.path()), others(folder.path());
    for (const char* name : {"sound.jpg", "odd.jpg"}) table.add(name);
    others.add("odd_too.jpg");
    const ImageFiles train(std::move(table), {}), test(std::move(others), {});
    Image image;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const int64_t id : {0, 1}) train.read(id, image);
      test.read(0, image);
    }
  }
  log::close_file();
  const std::string text = test::read_file(folder / "log.txt");
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK_THAT(text, Contains("odd.jpg") && Contains("libjpeg: ") && Contains("2 files"));
}
