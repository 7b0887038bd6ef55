#include <iterator>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

// A picture encoded in the format of `ending`: noise, so that it does not compress to nothing.
std::string encoded(const std::string& ending, int height, int width) {
  cv::Mat picture(height, width, CV_8UC3);
  cv::RNG(1).fill(picture, cv::RNG::UNIFORM, 0, 256);
  std::vector<uint8_t> bytes;
  cv::imencode(ending, picture, bytes);
  return {bytes.begin(), bytes.end()};
}

// A plain picture of one RGB colour.
std::string plain(const std::string& ending, int height, int width, int r, int g, int b) {
  std::vector<uint8_t> bytes;
  cv::imencode(ending, cv::Mat(height, width, CV_8UC3, cv::Scalar(b, g, r)), bytes);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("a folder's images are found in the order of their paths") {
  const test::TemporaryFolder folder;
  for (const char* name : {"b.png", "a/z.PNG", "a/b/c.jpg", "c.jpeg", ".hidden.png", ".git/d.png", "a/notes.txt",
                           "e.bmp", "f.webp", "g.tif", "h.JPE"}) {
    std::string ending = std::filesystem::path(name).extension().string();
    if (ending == ".txt") ending = ".png";
    if (ending == ".JPE") ending = ".jpg";
    folder.write(name, plain(ending, 2, 2, 1, 2, 3));
  }
  const ImageFiles images(unlabelled_images(folder.path()), {});
  std::vector<std::string> names;
  for (int64_t id = 0; id < images.size(); ++id) names.emplace_back(images.files().name(id));
  CHECK(names ==
        std::vector<std::string>{"a/b/c.jpg", "a/z.PNG", "b.png", "c.jpeg", "e.bmp", "f.webp", "g.tif", "h.JPE"});
  Image image;
  for (int64_t id = 0; id < images.size(); ++id) {
    images.read(id, image);
    CHECK(image.pixels.size() == 12);
  }
}

TEST_CASE("colours come out as red, green, blue, or grey") {
  const test::TemporaryFolder folder;
  folder.write("a.png", plain(".png", 3, 5, 200, 100, 50));
  Image image;
  ImageFiles(unlabelled_images(folder.path()), {}).read(0, image);
  CHECK((image.height == 3 && image.width == 5 && image.channels == 3));
  REQUIRE(image.pixels.size() == 45);
  CHECK(std::vector<uint8_t>(image.pixels.begin(), image.pixels.begin() + 3) == std::vector<uint8_t>{200, 100, 50});
  ImageFiles(unlabelled_images(folder.path()), {.grey = true}).read(0, image);
  REQUIRE(image.pixels.size() == 15);
  CHECK(image.pixels[0] == 124);  // 0.299 * 200 + 0.587 * 100 + 0.114 * 50 = 124.2
}

TEST_CASE("corrupt images are named") {
  const test::TemporaryFolder folder;
  Image image;
  const auto read = [&] { ImageFiles(unlabelled_images(folder.path()), {}).read(0, image); };
  for (const char* ending : {".jpg", ".png"}) {
    const std::string whole = encoded(ending, 32, 32);
    const auto file = folder.write(std::string("picture") + ending, whole);
    CHECK_NOTHROW(read());
    for (const size_t length : {whole.size() / 2, whole.size() - 20, size_t{10}, size_t{2}, size_t{0}}) {
      folder.write(file.filename(), whole.substr(0, length));
      CHECK_THROWS_WITH(read(), Contains(file.string()));
      CHECK_THROWS_AS(read(), DataError);
    }
    std::filesystem::remove(file);
  }
  folder.write("picture.png", std::string("this is a text"));
  CHECK_THROWS_WITH(read(), Contains("picture.png"));
}

TEST_CASE("a thumbnail's end marker does not make up for the picture's") {
  const test::TemporaryFolder folder;
  std::string jpeg = encoded(".jpg", 32, 32);
  const std::string segment("\xFF\xE1\x00\x06\xFF\xD8\xFF\xD9",
                            8);  // an APP1 segment that holds a start and an end marker
  jpeg.insert(2, segment);
  Image image;
  folder.write("a.jpg", jpeg);
  CHECK_NOTHROW(ImageFiles(unlabelled_images(folder.path()), {}).read(0, image));
  folder.write("a.jpg", jpeg.substr(0, jpeg.size() / 2));
  CHECK_THROWS_WITH(ImageFiles(unlabelled_images(folder.path()), {}).read(0, image), Contains("cut short"));
}

TEST_CASE("a folder without images is refused") {
  const test::TemporaryFolder folder;
  folder.write("notes.txt", std::string("x"));
  CHECK_THROWS_WITH(unlabelled_images(folder.path()),
                    Contains(folder.path().string()) && Contains(".webp") && Contains("notes.txt"));
  CHECK_THROWS_WITH(unlabelled_images(folder / "absent"), Contains("absent") && Contains("No such file"));
}
