#include <algorithm>
#include <filesystem>
#include <set>

#include "datasets/find_images.h"
#include "datasets/load_data.h"
#include "src/data_tools/split_folder.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
namespace fs = std::filesystem;

TEST_CASE("real plants are divided into tenths, and the lists are a data set", "[data]") {
  const fs::path plants = fs::path(test::environment("SETTRAIN_TEST_DATA")) / "plants-mini/images_train";
  SKIP_UNLESS(!test::environment("SETTRAIN_TEST_DATA").empty() && fs::exists(plants),
              "SETTRAIN_TEST_DATA holds no plants-mini/images_train");
  const test::TemporaryFolder folder;
  const SplitRequest request{.folder = plants, .out = folder / "lists", .rule = {}};
  const FolderSplit split = split_folder(request.folder, request.rule, request.seed);
  write_split(request, split);

  size_t images = 0;
  for (const ClassSplit& class_split : split.classes) {
    const int64_t tenth = (class_split.size() + 9) / 10;
    CHECK(std::ssize(class_split.val) == tenth);
    CHECK(std::ssize(class_split.calibration) == tenth);
    CHECK(std::ssize(class_split.test) == tenth);
    CHECK(class_split.size() > 4);
    images += static_cast<size_t>(class_split.size());
  }
  for (const ClassSplit& class_split : split.left_out) {
    CHECK(class_split.size() <= 4);
    images += static_cast<size_t>(class_split.size());
  }
  FileTable all(plants);
  find_images("", all);
  CHECK(images == static_cast<size_t>(all.size()));

  const std::string lists = request.out.string();
  Dataset dataset = test::load_dataset(
      "file_list", {"root=" + plants.string(), "train=" + lists + "/train.txt", "val=" + lists + "/val.txt",
                    "calibration=" + lists + "/calibration.txt", "test=" + lists + "/test.txt",
                    "num_classes=" + std::to_string(split.classes.size())});
  apply_class_options({.superclasses = "", .class_names = (request.out / "classes.csv").string()}, dataset);
  CHECK(dataset.class_names.front() == split.classes.front().name);
  for (const int64_t count : count_classes(dataset.train, dataset.num_classes())) CHECK(count >= 1);
  Image image;
  dataset.test.images->read(dataset.test.ids.front(), image);
  CHECK(std::min(image.width, image.height) == 288);
}
