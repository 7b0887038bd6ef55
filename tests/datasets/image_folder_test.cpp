// A folder for every class.
#include <sys/stat.h>

#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
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
  CHECK_THROWS_WITH(folders.load(), Contains("1 of 4 classes have no image") && Contains("the first is yew (an empty"));
  std::filesystem::remove_all(folders.folder / "train/yew");

  std::filesystem::remove(folders.folder / "test/ash/1.png");
  CHECK_THROWS_WITH(folders.load(), Contains("no .jpg") && Contains("test"));
  std::filesystem::remove_all(folders.folder / "test");
  CHECK_THROWS_WITH(folders.load(), Contains("test") && Contains("a folder for every class"));
  std::filesystem::remove_all(folders.folder / "train");
  CHECK_THROWS_WITH(folders.load(), Contains("train") && Contains("data.root should hold train, val and test"));
}

TEST_CASE("files that are not read are counted by ending, and the first is named") {
  Folders folders;
  for (const char* name : {"train/oak/b.HEIC", "train/oak/a.heic", "val/elm/c.gif", "test/ash/none", "test/beside.avif",
                           "train/elm/.hidden"}) {
    folders.folder.write(name, std::string("x"));
  }
  folders.add("train/beside.png");
  folders.add("val/beside.png");
  folders.folder.write("train/oak/win.JFIF", std::string("\xFF\xD8\xFF\xC0\0\x0B\x08\0\x02\0\x03\x01\x01\x11\0", 15));
  folders.folder.write("train/oak/broken.jfif", std::string("\xFF\xD8\xFF\xE0\0\x10JFIF", 10));
  folders.add("train/oak/plain.JPE");
  Dataset dataset;
  const std::string log = test::logged([&] { dataset = folders.load(); });
  CHECK(dataset.train.size() == 6);
  CHECK_THAT(log, Contains("7 files beside the images are not read: 2 .heic, 1 .avif, 1 .gif, 1 .jfif, 1 .txt, 1 "
                           "without an ending") &&
                      Contains("test/ash/none"));
  CHECK_THAT(log, Contains("2 images lie beside the class folders") && Contains("train/beside.png"));
  CHECK_THAT(log, !Contains("hidden"));
  std::filesystem::create_symlink("gone", folders.folder / "train/oak/lost.jfif");
  CHECK_THROWS_WITH(folders.load(), Contains("lost.jfif' is a link to nothing"));
}

TEST_CASE("where a class or a split has no image, the error tells of the files that are not read") {
  Folders folders;
  folders.folder.write("train/yew/a.heic", std::string("x"));
  CHECK_THROWS_WITH(folders.load(), Contains("the first is yew") && Contains("1 .heic") && !Contains("empty"));
  std::filesystem::remove_all(folders.folder / "train/yew");
  std::filesystem::remove_all(folders.folder / "test/ash");
  folders.add("test/1.png");
  CHECK_THROWS_WITH(folders.load(), Contains("/test'") && Contains("1 image lies beside the class folders"));
}

TEST_CASE("folders that zip programs leave are no classes, and are counted") {
  Folders folders;
  folders.add("train/__MACOSX/oak/1.png");
  folders.add("val/__MACOSX/1.png");
  folders.add("train/elm/__MACOSX/1.png");
  Dataset dataset;
  const std::string log = test::logged([&] { dataset = folders.load(); });
  CHECK(dataset.class_names == std::vector<std::string>{"ash", "elm", "oak"});
  CHECK((dataset.train.size() == 4 && dataset.val.size() == 2));
  CHECK_THAT(log, Contains("4 files beside the images") && Contains("train/__MACOSX"));  // notes.txt is the fourth
}

TEST_CASE("a pipe, and links to themselves, are named") {
  Folders folders;
  REQUIRE(::mkfifo((folders.folder / "train/oak/pipe.png").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(folders.load(), Contains("pipe.png' is no regular file"));
  std::filesystem::remove(folders.folder / "train/oak/pipe.png");
  for (const char* name : {"train/yew", "val/yew", "train/oak/self", "train/oak/self.png"}) {
    CAPTURE(name);
    const std::filesystem::path link = folders.folder / name;
    std::filesystem::create_symlink(link.filename(), link);
    CHECK_THROWS_WITH(folders.load(), Contains(std::string(name) + "' is a link to nothing"));
    std::filesystem::remove(link);
  }
}

TEST_CASE("a link that may have led to a class' folder does not go missing") {
  Folders folders;
  std::filesystem::create_symlink("unplugged", folders.folder / "train/yew");
  CHECK_THROWS_WITH(folders.load(), Contains("train/yew' is a link to nothing"));
  std::filesystem::rename(folders.folder / "train/yew", folders.folder / "train/oak/more");
  CHECK_THROWS_WITH(folders.load(), Contains("train/oak/more' is a link to nothing"));
  std::filesystem::rename(folders.folder / "train/oak/more", folders.folder / "train/oak/read.me");
  CHECK_NOTHROW(folders.load());
}

TEST_CASE("links to folders are followed, and a circle is refused") {
  Folders folders;
  folders.add("elsewhere/deep/2.png");
  std::filesystem::create_directory_symlink("../../elsewhere", folders.folder / "train/elm/more");
  std::filesystem::create_directory_symlink("../elsewhere", folders.folder / "train/link");
  const Dataset dataset = folders.load();
  CHECK(dataset.class_names == std::vector<std::string>{"ash", "elm", "link", "oak"});
  CHECK(dataset.train.labels == std::vector<int64_t>{0, 1, 1, 2, 3, 3});
  std::filesystem::create_directory_symlink("..", folders.folder / "elsewhere/deep/up");
  CHECK_THROWS_WITH(folders.load(), Contains("deep/up") && Contains("leads back to a folder that it lies in"));
  std::filesystem::remove(folders.folder / "elsewhere/deep/up");
  // A circle may close some folders behind the link: the link is named.
  std::filesystem::create_directory_symlink("../..", folders.folder / "train/elm/loop");
  CHECK_THROWS_WITH(folders.load(), Contains("train/elm/loop' leads back"));
}

TEST_CASE("one class, and classes one level too deep, are reported with the folders' names") {
  test::TemporaryFolder root;
  const auto add = [&](const std::string& name) { root.write(name, std::string("x")); };
  const auto load = [&] { return test::load_dataset("image_folder", {"root=" + root.path().string()}); };
  for (const char* split : {"train/", "val/", "test/"}) {
    for (const char* name : {"images/cat/1.png", "images/dog/1.png"}) add(std::string(split) + name);
  }
  CHECK_THROWS_WITH(load(), Contains("one class, 'images'") && Contains("images/cat, images/dog"));
  for (const char* split : {"train/", "val/", "test/"}) add(std::string(split) + "more/cow/1.png");
  CHECK_THAT(test::logged(load), Contains("no image of") && Contains("images/cat, images/dog, more/cow"));
  add("train/more/1.png");
  CHECK(test::logged(load).empty());
}

TEST_CASE("a split's folder of another name is named") {
  for (const auto& [split, others] : {std::pair("train", std::vector{"Train", "TRAINING"}),
                                      {"val", {"validation", "valid", "Val", "dev"}},
                                      {"test", {"Test", "testing"}}}) {
    for (const std::string other : others) {
      Folders folders;
      std::filesystem::rename(folders.folder / split, folders.folder / other);
      CAPTURE(other);
      CHECK_THROWS_WITH(folders.load(), Contains("/" + other + "' is there: rename it to " + split));
    }
  }
  Folders folders;
  std::filesystem::create_directory(folders.folder / "Val");
  CHECK_NOTHROW(folders.load());
}

TEST_CASE("a root above the splits' folders is reported with the folder to name") {
  test::TemporaryFolder root;
  root.write("photos/train/oak/1.png", std::string("x"));
  CHECK_THROWS_WITH(test::load_dataset("image_folder", {"root=" + root.path().string()}),
                    Contains("set data.root to '" + (root / "photos").string()));
}
