#include "src/data_tools/split_folder.h"

#include <fmt/format.h>

#include <set>

#include "datasets/decoding/decode_image.h"
#include "src/core/error.h"
#include "tests/data_tools/class_folders.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;
using test::add_class;
namespace fs = std::filesystem;

namespace {

// A grey image of 3x2 pixels.
void add_png(const test::TemporaryFolder& folder, const std::string& name) {
  const std::vector<uint8_t> png =
      encode_png({.height = 2, .width = 3, .channels = 1, .pixels = std::vector<uint8_t>(6, 90)});
  folder.write(name, std::string(png.begin(), png.end()));
}

using Paths = std::vector<fs::path>;

const ClassSplit& class_of(const FolderSplit& split, const std::string& name) {
  for (const ClassSplit& class_split : split.classes) {
    if (class_split.name == name) return class_split;
  }
  throw std::out_of_range(name);
}

}  // namespace

TEST_CASE("every image of a class is in one part, and small classes are left out") {
  const test::TemporaryFolder folder;
  add_class(folder, "oak", 25);
  add_class(folder, "ash", 5);
  add_class(folder, "rare", 4);
  add_class(folder, ".hidden", 9);
  folder.write("oak/notes.txt", {});
  folder.write("oak/more/deep.PNG", {});
  folder.write("beside.jpg", {});
  folder.write("oak/phone.HEIC", {});
  folder.write("beside.avif", {});
  fs::create_directory(folder / "empty");
  const FolderSplit split = split_folder(folder.path(), {}, 4);

  REQUIRE(split.classes.size() == 2);
  CHECK(split.classes[0].name == "ash");
  const ClassSplit& oak = split.classes[1];
  CHECK(oak.name == "oak");
  CHECK(oak.val.size() == 3);
  CHECK(oak.calibration.size() == 3);
  CHECK(oak.test.size() == 3);
  std::set<fs::path> all;
  for (const auto* part : {&oak.train, &oak.val, &oak.calibration, &oak.test}) {
    CHECK(std::is_sorted(part->begin(), part->end()));
    all.insert(part->begin(), part->end());
  }
  CHECK(all.size() == 26);
  CHECK(all.contains("oak/more/deep.PNG"));

  REQUIRE(split.left_out.size() == 2);
  CHECK(split.left_out[0].name == "empty");
  CHECK(split.left_out[1].size() == 4);
  CHECK(split.unread.misplaced == 1);
  CHECK(split.unread.endings == std::map<std::string, int64_t>{{".avif", 1}, {".heic", 1}, {".txt", 1}});
}

TEST_CASE("a class is divided by seed, its name and its files' names alone") {
  const test::TemporaryFolder first, second;
  add_class(first, "oak", 40);
  add_class(first, "ash", 40);
  for (const char* name : {"aaa", "ash", "oak", "zzz"}) add_class(second, name, 40);
  const FolderSplit two_classes = split_folder(first.path(), {}, 4), four_classes = split_folder(second.path(), {}, 4);
  for (const char* name : {"ash", "oak"}) CHECK(class_of(two_classes, name).val == class_of(four_classes, name).val);
  CHECK(class_of(split_folder(first.path(), {}, 5), "oak").val != class_of(two_classes, "oak").val);

  const auto names_of = [](const Paths& paths) {
    Paths names;
    for (const fs::path& path : paths) names.push_back(path.filename());
    return names;
  };
  CHECK(names_of(class_of(two_classes, "oak").val) != names_of(class_of(two_classes, "ash").val));
}

// Part of `rng: 1`: changed bits would change everyone's lists.
TEST_CASE("the drawn images stay the same from version to version") {
  const test::TemporaryFolder folder;
  add_class(folder, "a", 20);
  add_class(folder, "b", 5);
  const FolderSplit split = split_folder(folder.path(), {}, 4);
  CHECK(split.classes[0].val == Paths{"a/13.jpg", "a/15.jpg"});
  CHECK(split.classes[0].test == Paths{"a/1.jpg", "a/9.jpg"});
}

TEST_CASE("a folder with blanks, a link or a slash at its end is divided like any other") {
  const test::TemporaryFolder folder;
  add_class(folder, "data/two words", 6);
  add_class(folder, "data/oak, white", 6);
  fs::create_directory_symlink(folder / "data", folder / "link");
  const FolderSplit plain = split_folder(folder / "data", {}, 4), slash = split_folder(folder / "link/", {}, 4);
  CHECK(plain.classes[1].name == "two words");
  CHECK(plain.classes[1].train == slash.classes[1].train);
}

TEST_CASE("links to folders are followed, and a circle and a link to nothing are refused") {
  const test::TemporaryFolder folder;
  add_class(folder, "elsewhere/deep", 6);
  add_class(folder, "data/ash", 6);
  fs::create_directory_symlink("../elsewhere", folder / "data/oak");
  CHECK(split_folder(folder / "data", {}, 4).classes[1].size() == 6);
  fs::create_directory_symlink("..", folder / "elsewhere/deep/up");
  CHECK_THROWS_WITH(split_folder(folder / "data", {}, 4), Contains("deep/up"));
  fs::remove(folder / "elsewhere/deep/up");
  fs::create_symlink("gone.jpg", folder / "data/ash/link.jpg");
  CHECK_THROWS_WITH(split_folder(folder / "data", {}, 4), Contains("ash/link.jpg") && Contains("a link to nothing"));
}

TEST_CASE("empty files are counted") {
  const test::TemporaryFolder folder;
  for (const char* name : {"ash", "oak"}) {
    for (int i = 0; i < 6; ++i) folder.write(name + ("/" + std::to_string(i)) + ".jpg", std::string("x"));
  }
  CHECK(split_folder(folder.path(), {}, 4).empty == 0);
  folder.write("oak/3.jpg", {});
  const FolderSplit split = split_folder(folder.path(), {}, 4);
  CHECK(split.empty == 1);
  CHECK(split.first_empty == (folder / "oak/3.jpg").string());
  CHECK_THAT(describe_split({}, split), Contains("oak/3.jpg"));
}

TEST_CASE("images that cannot be read are left out where every image is read") {
  const test::TemporaryFolder folder;
  for (const char* name : {"ash", "oak"}) {
    for (int i = 0; i < 8; ++i) add_png(folder, fmt::format("{}/{}.png", name, i));
  }
  folder.write("oak/3.png", std::string("no image"));
  CHECK(split_folder(folder.path(), {}, 4).classes[1].size() == 8);
  const FolderSplit split = split_folder(folder.path(), {}, 4, /*readers=*/2);
  CHECK(split.read == 16);
  CHECK(split.classes[1].size() == 7);
  REQUIRE(split.unreadable.size() == 1);
  CHECK(split.unreadable[0].classes == "oak");
  CHECK_THAT(describe_split({}, split), Contains("unreadable, class oak: '" + (folder / "oak/3.png").string() + "'") &&
                                            Contains("read: all 16 images; 1 cannot be read"));
  for (int i = 0; i < 8; ++i) folder.write(fmt::format("ash/{}.png", i), std::string("no image"));
  CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4, 1),
                    Contains("9 images cannot be read") && Contains("ash/0.png"));
}

TEST_CASE("the summary says which promises the calibration images suffice for") {
  const test::TemporaryFolder folder;
  add_class(folder, "ash", 90);
  add_class(folder, "oak", 20);
  FolderSplit split = split_folder(folder.path(), {}, 4);
  CHECK_THAT(describe_split({}, split), Contains("need 9 calibration images: there are 11") &&
                                            Contains("1 of 2 classes have them; a class has them from 81 images on"));
  SplitRule rule;
  rule.kind = SplitRule::Kind::kPlantnet;
  split = split_folder(folder.path(), rule, 4);
  CHECK(split.classes[0].calibration.empty());
  CHECK_THAT(describe_split(rule, split), Contains("data.calibration_share") && !Contains("classwise"));
}

TEST_CASE("what is divided already is refused, however its folders are called") {
  const test::TemporaryFolder folder;
  for (const char* name : {"Train", "validation", "TEST"}) add_class(folder, name, 9);
  CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4), Contains("divided already"));
  add_class(folder, "oak", 9);
  CHECK_NOTHROW(split_folder(folder.path(), {}, 4));
}

TEST_CASE("a folder that cannot be divided is reported") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(split_folder(folder / "none", {}, 4), Contains("none") && Contains("cannot list"));
  CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4), Contains("one for every class"));
  add_class(folder, "oak", 9);
  add_class(folder, "ash", 4);
  CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4), Contains("1 of the 2 classes") && Contains("more than 4"));
  CHECK_THROWS_AS(split_folder(folder.path(), {}, 4), DataError);
  folder.write("ash/5.heic", {});
  CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4), Contains("1 of the 2 classes") && Contains("1 .heic"));
}

TEST_CASE("names that a list cannot hold are refused") {
  for (const char* wrong : {"two\nlines", " front", "end ", "r\r"}) {
    const test::TemporaryFolder folder;
    add_class(folder, "ash", 6);
    add_class(folder, wrong, 6);
    CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4), Contains("rename it"));
  }
  const test::TemporaryFolder folder;
  add_class(folder, "ash", 6);
  add_class(folder, "oak", 6);
  folder.write("oak/a\nb.jpg", {});
  CHECK_THROWS_WITH(split_folder(folder.path(), {}, 4), Contains("rename it"));
}
