// Decoding and resizing of real photographs, to the bytes of Pillow and torchvision.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "datasets/decode_image.h"
#include "datasets/resize.h"
#include "src/core/digest.h"
#include "tests/support/skip.h"

using namespace settrain;

namespace {

std::string digest_of(const Image& image) {
  Sha256 sha;
  sha.add(image.pixels);
  return sha.hex();
}

Image output_of(const Image& image, const nlohmann::json& output) {
  if (output["kind"] == "resize256_centercrop224") return center_crop(resize_short_side(image, 256), 224, 224);
  return resize_bilinear(crop(image, output["i"], output["j"], output["h"], output["w"]), 224, 224);
}

}  // namespace

TEST_CASE("photographs become the bytes of Pillow 12 and torchvision 0.26", "[data]") {
  const std::filesystem::path data = test::environment("SETTRAIN_TEST_DATA");
  SKIP_UNLESS(std::filesystem::exists(data / "imagenet-sample"), "SETTRAIN_TEST_DATA has no imagenet-sample");
  std::ifstream stream(test::golden_path("images.json"));
  const auto golden = nlohmann::json::parse(stream);
  REQUIRE(golden["images"].size() == 12);
  for (const auto& photograph : golden["images"]) {
    const auto file = photograph["file"].get<std::string>();
    CAPTURE(file);
    const Image image = decode_image(data / file, 3);
    CHECK((image.width == photograph["width"] && image.height == photograph["height"]));
    CHECK(digest_of(image) == photograph["sha256_rgb"]);
    for (const auto& output : photograph["outputs"]) CHECK(digest_of(output_of(image, output)) == output["sha256_rgb"]);
  }
}
