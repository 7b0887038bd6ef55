// Operations on pixels, beside the recorded bytes of torchvision on Pillow images.
#include "src/loader/image_operation.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "tests/loader/augmentation_golden.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

// The operation of torchvision's name and magnitude.
ImageOperation named_operation(const std::string& name, double magnitude) {
  using enum OperationKind;
  static const std::map<std::string, OperationKind> kinds{
      {"ShearX", kShearX},         {"ShearY", kShearY},     {"TranslateX", kTranslateX},
      {"TranslateY", kTranslateY}, {"Rotate", kRotate},     {"Brightness", kBrightness},
      {"Color", kColour},          {"Contrast", kContrast}, {"Sharpness", kSharpness},
      {"Posterize", kPosterize},   {"Solarize", kSolarize}, {"AutoContrast", kAutocontrast},
      {"Equalize", kEqualize},     {"Invert", kInvert},     {"Hue", kHue}};
  const OperationKind kind = kinds.at(name);
  const bool is_factor = kind == kBrightness || kind == kColour || kind == kContrast || kind == kSharpness;
  return {kind, is_factor ? 1 + magnitude : magnitude};
}

}  // namespace

TEST_CASE("every operation gives the bytes of torchvision 0.26 on Pillow 13") {
  const nlohmann::json golden = test::augmentation_golden();
  REQUIRE(golden["operations"].size() == 8 * 15);
  ImageEditor editor;
  for (const auto& recorded : golden["operations"]) {
    const auto name = recorded["operation"].get<std::string>();
    CAPTURE(name, recorded["image"].dump());
    const Image image = test::image_by_formula(recorded["image"]);
    Sha256 sha;
    for (const double amount : golden["amounts"][name]) {
      Image changed = image;
      editor.apply(named_operation(name, amount), changed);
      REQUIRE(changed.pixels.size() == image.pixels.size());
      sha.add(changed.pixels);
    }
    CHECK(test::half_hex(sha) == recorded["sha256"].get<std::string>());
  }
}

TEST_CASE("small images after an operation are torchvision's, byte by byte") {
  const nlohmann::json golden = test::augmentation_golden();
  for (const auto& recorded : golden["small"]) {
    Image image = test::image_by_formula(golden["small_image"]);
    const auto name = recorded["operation"].get<std::string>();
    ImageEditor().apply(named_operation(name, recorded["amount"]), image);
    std::string hex;
    for (const uint8_t byte : image.pixels) hex += fmt::format("{:02x}", byte);
    CAPTURE(name);
    CHECK(hex == recorded["bytes"].get<std::string>());
  }
}

TEST_CASE("a box is filled with a colour, and the rest stays") {
  Image image{3, 4, 3, std::vector<uint8_t>(36, 9)};
  fill_box({1, 2, 2, 2}, {1, 2, 3}, image);
  for (int64_t y = 0; y < 3; ++y) {
    for (int64_t x = 0; x < 4; ++x) {
      const auto* pixel = image.pixels.data() + (y * 4 + x) * 3;
      const std::vector<uint8_t> expected =
          y >= 1 && x >= 2 ? std::vector<uint8_t>{1, 2, 3} : std::vector<uint8_t>{9, 9, 9};
      CHECK(std::vector<uint8_t>(pixel, pixel + 3) == expected);
    }
  }
}

TEST_CASE("an operation says its name and amount, and refuses other channels") {
  CHECK(describe({OperationKind::kRotate, -9}) == "rotate -9");
  CHECK(describe({OperationKind::kBrightness, 1.27}) == "brightness 1.27");
  CHECK(describe({OperationKind::kEqualize, 0}) == "equalize");
  Image image{1, 1, 4, {1, 2, 3, 4}};
  CHECK_THROWS_AS(ImageEditor().apply({OperationKind::kInvert}, image), std::invalid_argument);
}
