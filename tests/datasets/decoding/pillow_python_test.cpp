// Images of every format, mode and bit depth, made by a script (pillow_images.py), and the pixels that Pillow finds.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

TEST_CASE("pixels are Pillow's, for every format, mode and bit depth") {
  const std::string python = test::environment("SETTRAIN_PYTHON");
  SKIP_UNLESS(!python.empty(), "SETTRAIN_PYTHON is not set");
  const test::TemporaryFolder folder;
  const std::string script = test::environment("SETTRAIN_SOURCE_DIR") + "/tests/datasets/decoding/pillow_images.py";
  REQUIRE(std::system((python + " -B -W ignore " + script + " " + folder.path().string()).c_str()) == 0);
  const auto expected = nlohmann::json::parse(test::read_file(folder / "expected.json"));
  CHECK(expected.size() > 240);
  for (const auto& image : expected) {
    const auto name = image.at("file").get<std::string>();
    CAPTURE(name);
    Image decoded;
    const auto digest_of_pixels = [&](const ImageFileOptions& options) {
      FileTable table(folder.path());
      table.add(name);
      REQUIRE_NOTHROW(ImageFiles(std::move(table), options).read(0, decoded));
      Sha256 sha;
      sha.add(decoded.pixels);
      return sha.hex();
    };
    for (const bool grey : {false, true}) {
      CHECK(digest_of_pixels({.grey = grey}) == image.at(grey ? "grey" : "rgb").get<std::string>());
      CHECK((decoded.width == image.at("width") && decoded.height == image.at("height")));
    }
    CHECK(digest_of_pixels({.apply_orientation = true}) == image.at("upright").get<std::string>());
  }
}
