#include <nlohmann/json.hpp>

#include "datasets/class_table.h"
#include "datasets/image_list.h"
#include "src/core/error.h"
#include "src/data_tools/split_folder.h"
#include "tests/data_tools/class_folders.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"

using namespace settrain;
using Catch::Contains;
using test::add_class;

namespace {

// A folder of two classes, and where its lists go.
struct Flora {
  test::TemporaryFolder folder;
  SplitRequest request;

  Flora() {
    add_class(folder, "flora/oak, white", 12);
    add_class(folder, "flora/ash tree", 7);
    add_class(folder, "flora/rare", 2);
    request.folder = folder / "flora";
    request.out = folder / "lists/first";
  }
  FolderSplit write() const {
    const FolderSplit split = split_folder(request.folder, request.rule, request.seed);
    write_split(request, split);
    return split;
  }
};

}  // namespace

TEST_CASE("the data set's own readers read what was written") {
  const Flora flora;
  const FolderSplit split = flora.write();
  const std::vector<std::string> names = read_class_table(flora.request.out / "classes.csv", {"class_0", "class_1"});
  CHECK(names == std::vector<std::string>{"ash tree", "oak, white"});
  const auto read = [&](const char* list) {
    FileTable files(flora.request.folder);
    return read_image_list(flora.request.out / list, 2, files);
  };
  const ImageList train = read("train.txt");
  CHECK(train.size() == 4 + 6);
  CHECK(train.labels.front() == 0);
  CHECK(train.labels.back() == 1);
  CHECK(read("val.txt").size() == 3);
  CHECK(read("calibration.txt").labels == std::vector<int64_t>{0, 1, 1});
  CHECK(read("test.txt").labels == std::vector<int64_t>{0, 1, 1});
}

TEST_CASE("names in quotes and paths with a dollar come back as they were") {
  Flora flora;
  add_class(flora.folder, "${HOME}/\"ash\"", 7);
  add_class(flora.folder, "${HOME}/ash", 7);
  flora.request.folder = flora.folder / "${HOME}";
  const FolderSplit split = flora.write();
  CHECK(read_class_table(flora.request.out / "classes.csv", {"class_0", "class_1"}) ==
        std::vector<std::string>{"\"ash\"", "ash"});
  CHECK_THAT(data_lines(flora.request, split), Contains("/$${HOME}\""));
}

TEST_CASE("a path that is not UTF-8 is refused before anything is written") {
  Flora flora;
  add_class(flora.folder, "flor\xE9/oak", 7);
  flora.request.folder = flora.folder / "flor\xE9";
  CHECK_THROWS_WITH(check_out(flora.request), Contains("flor\\xE9") && Contains("not UTF-8"));
}

TEST_CASE("split.json has what is needed to do it again") {
  const Flora flora;
  flora.write();
  const auto record = nlohmann::json::parse(test::read_file(flora.request.out / "split.json"));
  CHECK(record["rule"] == "tenths");
  CHECK(record["seed"] == 4);
  CHECK(record["min_images"] == 4);
  CHECK(record["classes"] == 2);
  CHECK(record["images"] == nlohmann::json{{"train", 10}, {"val", 3}, {"calibration", 3}, {"test", 3}});
  CHECK(record["left_out"] == nlohmann::json{{"rare", 2}});
  CHECK(record["sha256"].get<std::string>().size() == 64);

  Flora other;
  other.write();
  const auto same = nlohmann::json::parse(test::read_file(other.request.out / "split.json"));
  CHECK(same["sha256"] == record["sha256"]);  // wherever the folder lies
  other.request.seed = 5;
  other.request.overwrite = true;
  other.write();
  CHECK(nlohmann::json::parse(test::read_file(other.request.out / "split.json"))["sha256"] != record["sha256"]);
}

TEST_CASE("lists that are there are kept, or replaced if asked") {
  Flora flora;
  flora.write();
  flora.folder.write("lists/first/notes.txt", std::string("mine"));
  const std::string before = test::read_file(flora.request.out / "val.txt");
  flora.request.seed = 9;
  CHECK_THROWS_AS(flora.write(), RunError);
  CHECK_THROWS_WITH(flora.write(), Contains("--overwrite") && Contains("lists/first"));
  CHECK(test::read_file(flora.request.out / "val.txt") == before);
  flora.request.overwrite = true;
  flora.write();
  CHECK(test::read_file(flora.request.out / "val.txt") != before);
  CHECK(test::read_file(flora.request.out / "notes.txt") == "mine");
  flora.request.rule.kind = SplitRule::Kind::kPlantnet;
  flora.write();
  CHECK_FALSE(std::filesystem::exists(flora.request.out / "calibration.txt"));

  flora.request.out = flora.folder.write("file", {});
  CHECK_THROWS_WITH(flora.write(), Contains("file"));
  flora.request.out = flora.folder / "file/below";
  CHECK_THROWS_AS(flora.write(), RunError);
}

TEST_CASE("the summary counts, tells what was left out and gives the config") {
  const Flora flora;
  const FolderSplit split = flora.write();
  const std::string text = describe_split(flora.request.rule, split);
  CHECK_THAT(
      text,
      Contains("train               10") &&
          Contains("left out: 1 class with 2 images in all; a class needs more than 4, and one left to train on: "));
  CHECK_THAT(data_lines(flora.request, split),
             Contains("num_classes: 2") && Contains("calibration: \"../lists/first/calibration.txt\""));
}
