// The published lists, without their images.
#include <algorithm>
#include <filesystem>

#include "datasets/file_table.h"
#include "datasets/image_list.h"
#include "datasets/readers.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

using namespace settrain;

namespace {

std::filesystem::path lists() {
  return test::environment("SETTRAIN_TEST_DATA") + "/lists";
}

std::vector<int64_t> counts(const ImageList& list, int64_t num_classes) {
  return count_classes({"", nullptr, {}, list.labels}, num_classes);
}

}  // namespace

TEST_CASE("the lists of ImageNet-100-LT", "[data]") {
  SKIP_UNLESS(std::filesystem::exists(lists()), "SETTRAIN_TEST_DATA has no lists");
  FileTable files("/imagenet");
  const ImageList train = read_image_list(lists() / "imageNet_100_LT_train.txt", 100, files);
  const ImageList val = read_image_list(lists() / "ImageNet_100_val.txt", 100, files);
  const ImageList test = read_image_list(lists() / "ImageNet_100_test.txt", 100, files);
  CHECK(train.size() == 12205);
  const std::vector<int64_t> train_counts = counts(train, 100);
  CHECK(*std::min_element(train_counts.begin(), train_counts.end()) == 6);
  CHECK(*std::max_element(train_counts.begin(), train_counts.end()) == 1280);
  CHECK(counts(val, 100) == std::vector<int64_t>(100, 20));
  CHECK(counts(test, 100) == std::vector<int64_t>(100, 50));
  CHECK(train.label_sets.empty());
  CHECK(files.path(0) == "/imagenet/train/n02869837/n02869837_7193.JPEG");

  const FilePlaces places(files, 0, train.size());
  for (int64_t i = train.size(); i < files.size(); ++i) REQUIRE_FALSE(places.find(i).has_value());
  const std::vector<std::string> folders = folders_of_classes(train, files, 100);
  REQUIRE(folders.size() == 100);
  CHECK(folders[0] == "n02869837");
  CHECK(folders == folders_of_classes(val, files, 100));
  CHECK(folders == folders_of_classes(test, files, 100));
}

TEST_CASE("the lists of ImageNet-LT", "[data]") {
  SKIP_UNLESS(std::filesystem::exists(lists()), "SETTRAIN_TEST_DATA has no lists");
  FileTable files("/imagenet");
  const ImageList val = read_image_list(lists() / "ImageNet_LT_val.txt", 1000, files);
  const ImageList test = read_image_list(lists() / "ImageNet_LT_test.txt", 1000, files);
  CHECK(counts(val, 1000) == std::vector<int64_t>(1000, 20));
  CHECK(counts(test, 1000) == std::vector<int64_t>(1000, 50));
  CHECK(folders_of_classes(val, files, 1000) == folders_of_classes(test, files, 1000));
  CHECK(folders_of_classes(val, files, 1000).at(0) == "n01440764");
}
