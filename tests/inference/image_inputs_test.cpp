#include "src/inference/image_inputs.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;
using Names = std::vector<std::string>;

void touch(const std::filesystem::path& file, const std::string& text = "") {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

Names names(const FileTable& files) {
  Names all;
  for (int64_t i = 0; i < files.size(); ++i) all.push_back(files.path(i).string());
  return all;
}

Names inputs(const Names& given, const std::string& standard_input = "") {
  std::istringstream stream(standard_input);
  return names(image_inputs(given, stream));
}

FileTable table(const Names& files) {
  FileTable all;
  for (const std::string& file : files) all.add(file);
  return all;
}

}  // namespace

TEST_CASE("images, folders and lists are taken in the order given") {
  const test::TemporaryFolder folder;
  const std::string root = (folder / "").string();
  for (const char* name : {"f/b.png", "f/a/z.jpg", "f/a.jpg", "f/notes.txt"}) touch(folder / name);
  touch(folder / "lists/images.txt", "\xEF\xBB\xBFone two.png\r\n\n/abs.jpg\n");
  CHECK(inputs({root + "gone.JPG", root + "f", root + "lists/images.txt", "-"}, "x.png\n") ==
        Names{root + "gone.JPG", root + "f/a/z.jpg", root + "f/a.jpg", root + "f/b.png", root + "lists/one two.png",
              "/abs.jpg", "x.png"});
}

TEST_CASE("pictures of every kind are answered to, be it with an error") {
  const test::TemporaryFolder folder;
  const std::string root = (folder / "").string();
  for (const char* name : {"f/b.HEIC", "f/a.gif", "f/c.png", "f/d.txt", "only/x.avif"}) touch(folder / name);
  CHECK(inputs({root + "f", root + "only", root + "gone.jfif"}) ==
        Names{root + "f/a.gif", root + "f/b.HEIC", root + "f/c.png", root + "only/x.avif", root + "gone.jfif"});
}

TEST_CASE("a tilde that no shell has replaced is reported") {
  CHECK_THROWS_WITH(inputs({"~/nowhere/to/be/found"}), Contains("is not there") && Contains("~ is not replaced"));
}

TEST_CASE("an input that is none is refused by name") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  touch(folder / "model.bin", std::string("\x80\0\x02", 3));
  touch(folder / "empty.txt", "\n");
  CHECK_THROWS_WITH(inputs({(folder / "nothing").string()}), Contains("nothing' is not there"));
  CHECK_THROWS_WITH(inputs({(folder / "empty").string()}), Contains("empty' or the folders in it"));
  CHECK_THROWS_WITH(inputs({(folder / "model.bin").string()}), Contains("model.bin' is neither an image nor text"));
  CHECK_THROWS_WITH(inputs({(folder / "empty.txt").string()}), Contains("empty.txt' names no image"));
  CHECK_THROWS_WITH(inputs({"-"}), Contains("'-' names no image"));
}

TEST_CASE("images of a folder are a group") {
  const ImageGroups groups = image_groups("folder", table({"b/1.jpg", "a/2.jpg", "./b/3.jpg", "4.jpg"}));
  CHECK(groups.names == Names{"b", "a", "."});
  CHECK(groups.group_of == std::vector<int64_t>{0, 1, 0, 2});
}

TEST_CASE("an image counts once in its group, however often it is named") {
  CHECK(names(without_repeats(table({"b/1.jpg", "./b/1.jpg", "2.jpg", "c/../2.jpg", "3.jpg"}))) ==
        Names{"b/1.jpg", "2.jpg", "3.jpg"});
}

TEST_CASE("photographs of an observation of Pl@ntNet's metadata are a group") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("plantnet300K_metadata.json",
                                 std::string(R"({"a": {"species_id": "1", "split": "test", "obs_id": "7"},
    "b": {"species_id": "1", "split": "test", "obs_id": "8"}, "c": {"species_id": "2", "split": "test", "obs_id": "7"},
    "d": {"species_id": "2", "split": "test"}})"));
  const ImageGroups groups = image_groups(file, table({"x/b.jpg", "x/a.jpg", "y/c.jpg"}));
  CHECK(groups.names == Names{"8", "7"});
  CHECK(groups.group_of == std::vector<int64_t>{0, 1, 1});
  CHECK_THROWS_WITH(image_groups(file, table({"x/d.jpg"})),
                    Contains("x/d.jpg") && Contains(file.string()) && Contains("'d'") && Contains("obs_id"));
  CHECK_THROWS_WITH(image_groups(file, table({"x/e.jpg"})), Contains("x/e.jpg") && !Contains("obs_id"));
  CHECK_THROWS_AS(image_groups(folder.write("bad.json", std::string("{")), table({"x/a.jpg"})), DataError);
}

TEST_CASE("a CSV file says which image is of which group") {
  const test::TemporaryFolder folder;
  const auto image = [&](const char* name) { return (folder / name).string(); };
  touch(folder / "g.csv", "\xEF\xBB\xBFimage,group\n1.jpg,oak\r\nsub/../2,x.jpg,elm\n" + image("3.jpg") + ",oak\n");
  const auto file = (folder / "g.csv").string();
  const ImageGroups groups = image_groups(file, table({image("3.jpg"), image("2,x.jpg"), image("1.jpg")}));
  CHECK(groups.names == Names{"oak", "elm"});
  CHECK(groups.group_of == std::vector<int64_t>{0, 1, 0});
  CHECK_THROWS_WITH(image_groups(file, table({"other.jpg"})), Contains("'other.jpg' is in no group of"));
  CHECK_THROWS_AS(image_groups(image("gone.csv"), table({"1.jpg"})), DataError);
  CHECK_THROWS_WITH(image_groups(folder.path().string(), table({"1.jpg"})), Contains("write --group folder"));
  touch(folder / "bad.csv", "a.jpg,oak\nb.jpg\n");
  CHECK_THROWS_WITH(image_groups(image("bad.csv"), table({"a.jpg"})), Contains("bad.csv:2: expected 'image,group'"));
  touch(folder / "twice.csv", "a.jpg,oak\na.jpg,elm\n");
  CHECK_THROWS_WITH(image_groups(image("twice.csv"), table({"a.jpg"})), Contains("in another group already"));
}

}  // namespace settrain
