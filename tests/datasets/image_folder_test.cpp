// A folder for every class.
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

struct Folders {
  test::TemporaryFolder folder;

  Folders() {
    for (const char* name : {"train/oak/1.png", "train/oak/deep/2.png", "train/elm/1.png", "train/ash/1.png",
                             "val/oak/1.png", "val/elm/1.png", "test/ash/1.png", "train/.ipynb_checkpoints/1.png"}) {
      add(name);
    }
    folder.write("train/oak/notes.txt", std::string("no image"));
  }

  void add(const std::string& name) {
    std::vector<uint8_t> png;
    cv::imencode(".png", cv::Mat(6, 9, CV_8UC3, cv::Scalar(30, 20, 10)), png);
    folder.write(name, std::string(png.begin(), png.end()));
  }

  Dataset load() { return test::load_dataset("image_folder", {"root=" + folder.path().string(), "grey=true"}); }
};

}  // namespace

TEST_CASE("classes are the training folders by name, samples the files by path") {
  Folders folders;
  const Dataset dataset = folders.load();
  CHECK(dataset.class_names == std::vector<std::string>{"ash", "elm", "oak"});
  CHECK(dataset.train.labels == std::vector<int64_t>{0, 1, 2, 2});
  CHECK(dataset.train.ids == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(dataset.val.labels == std::vector<int64_t>{1, 2});
  CHECK(dataset.val.ids == std::vector<int64_t>{4, 5});
  CHECK(dataset.test.labels == std::vector<int64_t>{0});
  Image image;
  dataset.test.images->read(dataset.test.ids[0], image);
  CHECK((image.height == 6 && image.width == 9 && image.channels == 1));
  CHECK(dataset.superclass_of.empty());

  folders.add("train/oak/3.png");
  CHECK(folders.load().digest != dataset.digest);
}

TEST_CASE("a link to an image that is not there is an error, not one image less") {
  Folders folders;
  std::filesystem::create_symlink("nowhere.png", folders.folder / "train/elm/link.png");
  CHECK_THROWS_WITH(folders.load(), Contains("link.png") && Contains("a link to nothing"));
}

TEST_CASE("what is wrong with the folders is said") {
  Folders folders;
  folders.add("val/oack/1.png");
  CHECK_THROWS_WITH(folders.load(), Contains("val/oack") && Contains("did you mean 'oak'?"));
  std::filesystem::remove_all(folders.folder / "val/oack");

  std::filesystem::create_directory(folders.folder / "train/yew");
  CHECK_THROWS_WITH(folders.load(), Contains("1 of 4 classes have no image") && Contains("the first is yew"));
  std::filesystem::remove_all(folders.folder / "train/yew");

  std::filesystem::remove(folders.folder / "test/ash/1.png");
  CHECK_THROWS_WITH(folders.load(), Contains("no .jpg") && Contains("test"));
  std::filesystem::remove_all(folders.folder / "test");
  CHECK_THROWS_WITH(folders.load(), Contains("test") && Contains("a folder for every class"));
  std::filesystem::remove_all(folders.folder / "train");
  CHECK_THROWS_WITH(folders.load(), Contains("train") && Contains("data.root should hold train, val and test"));
}
