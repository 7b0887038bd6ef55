// Decoding, scaling and cropping of real photographs, to the bytes of Pillow and torchvision.
#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "datasets/decoding/image_header.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/loader/pipeline.h"
#include "tests/loader/render.h"
#include "tests/support/catch2.h"
#include "tests/support/image_part.h"
#include "tests/support/skip.h"

using namespace settrain;

namespace {

namespace fs = std::filesystem;

std::string digest_of(const Image& image) {
  Sha256 sha;
  sha.add(image.pixels);
  return sha.hex();
}

// The view that one of the golden outputs shows.
View view_of(const nlohmann::json& output, int64_t height, int64_t width) {
  PipelineOptions options;
  options.pipeline = "imagenet";
  options.interpolation = output.value("interpolation", "bilinear");
  if (output["kind"] == "resize256_centercrop224")
    return Pipeline(options, 0, 0, ViewUse::kEvaluation).views_of(height, width, 0, 0).at(0);
  View view{{output["i"], output["j"], output["h"], output["w"]}, 224, 224, {0, 0, 224, 224}};
  if (options.interpolation == "bicubic") view.filter = Filter::kBicubic;
  return view;
}

// The way of the loader: no more is decoded than the view needs.
Image output_of(const ImageFiles& files, const nlohmann::json& output) {
  View view;
  ImagePart part;
  const auto choose = [&](int64_t height, int64_t width) {
    view = view_of(output, height, width);
    return needed_pixels(view);
  };
  files.read_part(0, choose, part);
  return test::render(part, view);
}

}  // namespace

TEST_CASE("photographs become the bytes of Pillow 12 and torchvision 0.26", "[data]") {
  const fs::path data = test::environment("SETTRAIN_TEST_DATA");
  SKIP_UNLESS(fs::exists(data / "imagenet-sample"), "SETTRAIN_TEST_DATA has no imagenet-sample");
  std::ifstream stream(test::golden_path("images.json"));
  const auto golden = nlohmann::json::parse(stream);
  REQUIRE(golden["images"].size() == 12);
  for (const auto& photograph : golden["images"]) {
    const auto file = photograph["file"].get<std::string>();
    CAPTURE(file);
    FileTable table(data);
    table.add(file);
    const ImageFiles files(std::move(table), {});
    Image image;
    files.read(0, image);
    CHECK((image.width == photograph["width"] && image.height == photograph["height"]));
    CHECK(digest_of(image) == photograph["sha256_rgb"].get<std::string>());
    CHECK(photograph["outputs"].size() == 6);
    for (const auto& output : photograph["outputs"])
      CHECK(digest_of(output_of(files, output)) == output["sha256_rgb"].get<std::string>());
  }
}

TEST_CASE("parts of photographs have the pixels of the whole", "[data]") {
  const fs::path data = test::environment("SETTRAIN_TEST_DATA");
  SKIP_UNLESS(fs::exists(data / "imagenet-sample"), "SETTRAIN_TEST_DATA has no imagenet-sample");
  int64_t photographs = 0;
  for (const char* folder : {"imagenet-sample", "plants-mini-originals"}) {
    for (const auto& entry : fs::directory_iterator(data / folder)) {
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(stream), {}};
      if (parse_image_header(bytes).format != ImageFormat::kJpeg) continue;
      CAPTURE(entry.path());
      const Image whole = test::decode_whole(bytes, 3);
      for (uint32_t i = 0; i < 6; ++i) test::check_part(bytes, whole, test::random_box(whole, i));
      ++photographs;
    }
  }
  CHECK(photographs == 96);
}
