// Images that are in two splits.
#include "datasets/shared_images.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/feature_file.h"
#include "datasets/image_files.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

namespace {

// Files named "SPLIT/NAME", elms where the name begins so, and else oaks; ids are places in the order of train, val,
// calibration, test.
struct SharedFiles {
  test::TemporaryFolder folder;

  std::string quoted(const std::string& name) const { return "'" + (folder / name).string() + "'"; }

  Dataset load() {
    Dataset dataset;
    dataset.class_names = {"oak", "elm"};
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
        split->labels.push_back(name.starts_with("elm") ? 1 : 0);
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
  CHECK(search.found[1].first == files.quoted("train/a"));
  CHECK(search.found[1].first_other == files.quoted("test/x"));
}

TEST_CASE("files of one split with the same contents and different labels are found") {
  SharedFiles files;
  for (const char* name : {"train/a", "train/b", "train/elm1", "train/elm2", "val/elm1"})
    files.folder.write(name, std::string("same contents"));
  files.folder.write("train/elm3", std::string("other content"));
  files.folder.write("test/a", std::string("in test"));
  std::filesystem::create_symlink("a", files.folder / "test/elm4");
  const auto search = find_shared_images(files.load(), kAll);
  REQUIRE(search.two_labels.size() == 2);
  const TwoLabels& train = search.two_labels[0];
  CHECK((train.split == "train" && train.count == 2));
  CHECK((train.first == files.quoted("train/a") && train.other == files.quoted("train/elm1")));
  CHECK((train.first_labels == "oak" && train.other_labels == "elm"));
  CHECK((search.two_labels[1].split == "test" && search.two_labels[1].count == 1));
  for (const TwoLabels& found : search.two_labels) {
    for (const std::string& part : {found.first, found.other, found.first_labels, found.other_labels})
      CHECK(found.text().find(part) != std::string::npos);
  }
  // The links are found among too many files, too: two splits may have few enough of them where one has too many files.
  for (const auto& [most_files, shared] : {std::pair<int64_t, size_t>{5, 0}, {7, 1}}) {
    const auto limited = find_shared_images(files.load(), most_files);
    CHECK(limited.not_compared == 8);
    CHECK(limited.found.size() == shared);
    REQUIRE(limited.two_labels.size() == 1);
    CHECK(limited.two_labels[0].split == "test");
  }
}

TEST_CASE("labels are compared as sets where images have several") {
  SharedFiles files;
  for (const char* name : {"train/a", "train/b", "train/c"}) files.folder.write(name, std::string("same contents"));
  Dataset dataset = files.load();
  const auto add = [&](const std::vector<int64_t>& labels) { dataset.train.label_sets.add(labels); };
  add({0, 1});
  add({1, 0});
  add({0});
  const auto found = find_shared_images(dataset, kAll).two_labels;
  REQUIRE(found.size() == 1);
  CHECK((found[0].count == 1 && found[0].other == files.quoted("train/c")));
  CHECK((found[0].first_labels == "oak, elm" && found[0].other_labels == "oak"));
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
  CHECK(found[0].first_other == files.quoted("test/same"));
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
  CHECK(search.found[0].first_other == files.quoted("test/link"));
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

TEST_CASE("equal rows of features are found where they have enough different numbers not to be equal by chance") {
  for (const bool is_telling : {true, false}) {
    Dataset dataset;
    dataset.class_names = {"oak", "elm"};
    const auto add = [&](Split& split, const std::vector<float>& first_numbers) {
      constexpr int64_t kWidth = 8;
      FeatureFile file;
      std::vector<float> values;
      for (const float number : first_numbers) {
        values.push_back(number);
        for (int64_t i = 1; i < kWidth; ++i) values.push_back(is_telling ? 10.0F * static_cast<float>(i) : 0);
        split.ids.push_back(std::ssize(split.ids));
        split.labels.push_back(split.ids.back() % 2);
      }
      file.features = std::make_shared<FeatureTable>(std::move(values), kWidth);
      split.images = std::make_shared<FeatureRows>(split.name + ".npz", std::move(file));
    };
    add(dataset.train, {1, 2, 3, 3});
    add(dataset.test, {4, 2, 1});
    const SharedImageSearch search = find_shared_images(dataset, 0);
    REQUIRE(search.found.size() == (is_telling ? 1 : 0));
    REQUIRE(search.two_labels.size() == (is_telling ? 1 : 0));
    if (!is_telling) continue;
    CHECK(search.found[0].text() ==
          "2 images of test are also in train; the first: row 1 of 'test.npz' is the image of row 1 of 'train.npz'");
    CHECK(
        search.two_labels[0].text() ==
        "1 image has two labels in train; the first: row 3 of 'train.npz' (elm) is the image of row 2 of 'train.npz' (oak)");
  }
}
