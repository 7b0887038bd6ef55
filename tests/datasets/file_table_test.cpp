// Many files' names, and where a file is among them.
#include "datasets/file_table.h"

#include <fmt/format.h>

#include "datasets/find_images.h"
#include "datasets/image_list.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

TEST_CASE("a table gives names, paths and sizes") {
  const test::TemporaryFolder folder;
  folder.write("a/b.png", std::string("12345"));
  const auto elsewhere = folder.write("c.png", std::string(""));
  FileTable files(folder.path() / "a");
  files.add("b.png");
  files.add(elsewhere.string());
  files.add("known.png", 7);
  CHECK_FALSE(files.measure().has_value());
  CHECK(files.size() == 3);
  CHECK(files.name(0) == "b.png");
  CHECK(files.path(0) == folder / "a/b.png");
  CHECK(files.path(1) == elsewhere);
  CHECK(files.file_size(0) == 5);
  CHECK(files.file_size(1) == 0);
  CHECK(files.file_size(2) == 7);
  CHECK_THROWS_AS(files.name(3), std::out_of_range);

  files.add("absent.png");
  CHECK(files.measure() == 3);
  std::filesystem::create_directory(folder / "a/absent.png");
  CHECK(files.measure() == 3);  // a folder is no file
}

TEST_CASE("a file is found by any of its names") {
  for (const char* root : {"/data/x", "data/x", "./data/x/", "../x", ".", ""}) {
    CAPTURE(root);
    FileTable files(root);
    for (const char* name : {"a.png", "b/c.png", "./b/../d.png", "/far/e.png", "../a.png"}) files.add(name);
    const FilePlaces places(files, 0, files.size());
    CHECK(places.find("a.png") == 0);
    CHECK(places.find("b//c.png") == 1);
    CHECK(places.find("d.png") == 2);
    CHECK(places.find("/far/./e.png") == 3);
    CHECK(places.find("b/../../a.png") == 4);
    CHECK_FALSE(places.find("c.png").has_value());
    CHECK_FALSE(places.find("far/e.png").has_value());
    CHECK(places.find((std::filesystem::absolute(*root ? root : ".") / "b/c.png").string()) == 1);
  }
  FileTable files("/data/x");
  files.add("a.png");
  files.add("/data/x/b.png");
  const FilePlaces places(files, 0, 2);
  CHECK(places.find("/data/x/a.png") == 0);
  CHECK(places.find("b.png") == 1);
}

TEST_CASE("images are found folder by folder") {
  const test::TemporaryFolder folder;
  for (const char* name : {"s/a.png", "s/a/b.png", "s/a-b/c.png", "s/a/b/c.png", "s/A.png"}) {
    folder.write(name, std::string("x"));
  }
  FileTable files(folder.path());
  files.add("first.png");
  find_images("s", files);
  std::vector<std::string> names;
  for (int64_t i = 0; i < files.size(); ++i) names.emplace_back(files.name(i));
  CHECK(names ==
        std::vector<std::string>{"first.png", "s/A.png", "s/a/b/c.png", "s/a/b.png", "s/a-b/c.png", "s/a.png"});
}

TEST_CASE("a listed file takes under 100 bytes") {
  constexpr int64_t kFiles = 100000;
  const test::TemporaryFolder folder;
  std::string text;
  for (int64_t i = 0; i < kFiles; ++i)
    text += fmt::format("train/n{:08}/n{:08}_{}.JPEG {}\n", i % 1000, i % 1000, i, i % 1000);
  folder.write("list.txt", text);
  FileTable files(folder.path());
  ImageList list = read_image_list(folder / "list.txt", 1000, files);
  const FilePlaces places(files, 0, files.size());
  CHECK(places.find(kFiles - 1) == kFiles - 1);
  CHECK(list.label_sets.offsets.capacity() == 0);
  // In all while loading: names, sizes, labels, line numbers, and the places by which double entries are found.
  const auto capacity = static_cast<int64_t>((list.labels.capacity() + list.lines.capacity()) * sizeof(int64_t));
  CHECK(files.bytes() + capacity + 16 * kFiles < 150 * kFiles);
  files.shrink_to_fit();
  CHECK(files.bytes() < 60 * kFiles);
}
