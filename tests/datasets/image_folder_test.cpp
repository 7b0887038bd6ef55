// A folder for every class, and text files that say something of every class.
#include "datasets/image_folder.h"

#include <catch2/catch.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "datasets/class_table.h"
#include "src/core/error.h"
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

  Dataset load(const std::string& superclasses = "", const std::string& names = "") {
    ImageFolderOptions options;
    options.root = folder.path().string();
    if (!superclasses.empty()) options.superclasses = folder.write("super.csv", superclasses).string();
    if (!names.empty()) options.class_names = folder.write("names.csv", names).string();
    return load_image_folder(options, {.image_size = 4, .grey = true});
  }
};

}  // namespace

TEST_CASE("classes are the training folders by name, samples the files by path", "[fast]") {
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
  CHECK((image.height == 4 && image.width == 4 && image.channels == 1));
  CHECK(dataset.superclass_of.empty());

  folders.add("train/oak/3.png");
  CHECK(folders.load().digest != dataset.digest);
}

TEST_CASE("superclasses and names come from text files", "[fast]") {
  Folders folders;
  const Dataset dataset =
      folders.load("oak,Fagaceae\nelm,Ulmaceae\r\n\nash, Fagaceae\n", "ash,Ash, common\nelm,Elm\noak,Oak\n");
  CHECK(dataset.superclass_names == std::vector<std::string>{"Fagaceae", "Ulmaceae"});
  CHECK(dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK(dataset.class_names == std::vector<std::string>{"Ash, common", "Elm", "Oak"});
}

TEST_CASE("a text file that does not fit the classes is an error with its line", "[fast]") {
  Folders folders;
  CHECK_THROWS_WITH(folders.load("oak,A\noaks,A\n"), Contains("super.csv:2: ") && Contains("did you mean 'oak'?"));
  CHECK_THROWS_WITH(folders.load("oak,A\noak,B\n"), Contains("super.csv:2: ") && Contains("line above"));
  CHECK_THROWS_WITH(folders.load("oak\n"), Contains("super.csv:1: ") && Contains("expected 'class,text'"));
  CHECK_THROWS_WITH(folders.load("oak,A\nelm,B\n"), Contains("super.csv: no line for the class 'ash'"));
}

TEST_CASE("what is wrong with the folders is said", "[fast]") {
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
