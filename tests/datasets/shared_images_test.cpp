// Images that are in two splits.
#include "datasets/shared_images.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "datasets/image_files.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

namespace {

// Files named "SPLIT/NAME"; ids are places in the order of train, val, calibration, test.
struct SharedFiles {
  test::TemporaryFolder folder;

  Dataset load() {
    Dataset dataset;
    FileTable files(folder.path());
    for (Split* split : {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test}) {
      split->name = split == &dataset.train  ? "train"
                    : split == &dataset.val  ? "val"
                    : split == &dataset.test ? "test"
                                             : "calibration";
      std::vector<std::string> names;
      if (std::filesystem::exists(folder / split->name)) {
        for (const auto& entry : std::filesystem::directory_iterator(folder / split->name))
          names.push_back(entry.path().filename());
      }
      std::sort(names.begin(), names.end());
      for (const std::string& name : names) {
        split->ids.push_back(files.size());
        split->labels.push_back(0);
        files.add(split->name + "/" + name);
      }
    }
    CHECK_FALSE(files.measure());
    const auto images = std::make_shared<ImageFiles>(std::move(files), ImageFileOptions{});
    for (Split* split : {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test}) split->images = images;
    return dataset;
  }
};

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

}  // namespace

TEST_CASE("files with the same contents are found in each pair of splits, those of one split are not reported") {
  SharedFiles files;
  for (const char* name : {"train/a", "train/b", "val/1", "test/x", "test/y"})
    files.folder.write(name, std::string("same contents"));
  for (const char* name : {"train/c", "val/2", "calibration/3"}) files.folder.write(name, std::string(name));
  const SharedImageSearch search = find_shared_images(files.load(), kAll);
  CHECK(search.not_compared == 0);
  REQUIRE(search.found.size() == 3);
  CHECK((search.found[0].split == "train" && search.found[0].other == "val" && search.found[0].count == 1));
  CHECK((search.found[1].split == "train" && search.found[1].other == "test" && search.found[1].count == 2));
  CHECK((search.found[2].split == "val" && search.found[2].other == "test" && search.found[2].count == 2));
  CHECK(search.found[1].first == (files.folder / "train/a").string());
  CHECK(search.found[1].first_other == (files.folder / "test/x").string());
}

TEST_CASE("files of equal size, beginning and end are compared as a whole") {
  SharedFiles files;
  std::string contents(20'000, 'x');
  files.folder.write("train/a", contents);
  files.folder.write("test/same", contents);
  contents[10'000] = 'y';
  files.folder.write("test/other", contents);
  const auto found = find_shared_images(files.load(), kAll).found;
  REQUIRE(found.size() == 1);
  CHECK(found[0].count == 1);
  CHECK(found[0].first_other == (files.folder / "test/same").string());
}

TEST_CASE("of too many files only links are compared, and the rest is counted") {
  SharedFiles files;
  files.folder.write("train/a", std::string("12345"));
  files.folder.write("test/copy", std::string("12345"));
  files.folder.write("val/b", std::string("123456"));
  std::filesystem::create_symlink("../train/a", files.folder / "test/link");
  const SharedImageSearch search = find_shared_images(files.load(), 2);
  CHECK(search.not_compared == 3);
  REQUIRE(search.found.size() == 1);
  CHECK(search.found[0].count == 1);
  CHECK(search.found[0].first_other == (files.folder / "test/link").string());
  CHECK(find_shared_images(files.load(), 3).found[0].count == 2);
}

TEST_CASE("empty and missing files are equal to no other") {
  SharedFiles files;
  for (const char* name : {"train/a", "test/a"}) files.folder.write(name, std::string());
  for (const char* name : {"train/b", "test/b"}) files.folder.write(name, std::string("both"));
  const Dataset dataset = files.load();
  std::filesystem::remove(files.folder / "test/b");
  CHECK(find_shared_images(dataset, kAll).found.empty());
  CHECK(find_shared_images(dataset, 0).found.empty());
}
