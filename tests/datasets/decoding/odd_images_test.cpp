// Odd and broken files, and what Pillow makes of each.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "datasets/decoding/decode_image.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

using namespace settrain;
using Catch::Contains;

namespace {

namespace fs = std::filesystem;

fs::path odd(const std::string& name = "") {
  return fs::path(test::golden_path("images_odd")) / name;
}

Image read(const std::string& name, const ImageFileOptions& options = {}) {
  FileTable table(odd());
  table.add(name);
  Image image;
  ImageFiles(std::move(table), options).read(0, image);
  return image;
}

std::string digest_of(const Image& image) {
  Sha256 sha;
  sha.add(image.pixels);
  return sha.hex();
}

nlohmann::json goldens() {
  std::ifstream stream(odd("odd.json"));
  return nlohmann::json::parse(stream)["images"];
}

}  // namespace

TEST_CASE("odd files have Pillow's pixels") {
  int64_t read_files = 0;
  for (const auto& golden : goldens()) {
    const std::string name = fs::path(golden["file"].get<std::string>()).filename();
    if (!golden.contains("sha256_rgb") || name == "gray16.png") continue;
    CAPTURE(name);
    const Image image = read(name);
    CHECK((image.width == golden["width"] && image.height == golden["height"] && image.channels == 3));
    CHECK(digest_of(image) == golden["sha256_rgb"].get<std::string>());
    ++read_files;
  }
  CHECK(read_files == 26);
}

TEST_CASE("16-bit greys become 8-bit ones, where Pillow makes all of them white") {
  const Image image = read("gray16.png");
  CHECK((image.width == 53 && image.height == 37));
  std::array<int64_t, 256> counts{};
  for (const uint8_t pixel : image.pixels) ++counts[pixel];
  CHECK(std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }) > 50);
}

TEST_CASE("orientation is applied where that is asked for") {
  for (const auto& golden : goldens()) {
    if (!golden.contains("after_exif_transpose")) continue;
    const std::string name = fs::path(golden["file"].get<std::string>()).filename();
    CAPTURE(name);
    const Image image = read(name, {.apply_orientation = true});
    const auto& upright = golden["after_exif_transpose"];
    CHECK((image.width == upright["width"] && image.height == upright["height"]));
    CHECK(digest_of(image) == upright["sha256_rgb"].get<std::string>());
  }
}

TEST_CASE("broken files are errors that name the file and say what is wrong") {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"truncated.jpg", "cut short"},        {"no_end_marker.jpg", "cut short"},
      {"empty.jpg", "the file is empty"},    {"text.jpg", "is no JPEG"},
      {"declares_0_wide.jpg", "Empty JPEG"}, {"declares_20000x20000.jpg", "20000x20000 pixels"},
      {"absent.jpg", "No such file"},
  };
  for (const auto& [name, what] : broken) {
    CAPTURE(name);
    CHECK_THROWS_AS(read(name), DataError);
    CHECK_THROWS_WITH(read(name), Contains(name) && Contains(what));
  }
}

TEST_CASE("grey pixels are asked for") {
  for (const char* name : {"gray.jpg", "yuv420_odd.jpg", "cmyk_adobe.jpg", "rgb_no_ycc.jpg", "rgba.png", "bmp.bmp"}) {
    CAPTURE(name);
    const Image colour = read(name), grey = read(name, {.grey = true});
    CHECK((grey.channels == 1 && grey.pixels.size() * 3 == colour.pixels.size()));
    int64_t far = 0;
    for (size_t i = 0; i < grey.pixels.size(); ++i) {
      const double luma =
          0.299 * colour.pixels[3 * i] + 0.587 * colour.pixels[3 * i + 1] + 0.114 * colour.pixels[3 * i + 2];
      far += std::abs(grey.pixels[i] - luma) > 3;  // of clipped colours the JPEG's own grey differs more
    }
    CHECK(far < static_cast<int64_t>(grey.pixels.size() / 20));
  }
}
