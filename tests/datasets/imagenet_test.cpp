// ImageNet's folders, and the forms in which the labels of its validation images come.
#include <fmt/format.h>

#include <algorithm>

#include "datasets/readers.h"
#include "src/core/error.h"
#include "tests/datasets/tiny_images.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

const std::vector<std::string> kClasses = {"n01", "n02", "n03"};

// 10 training images of each of 3 classes.
struct Imagenet : test::TinyImages {
  Imagenet() {
    for (const std::string& wnid : kClasses) {
      for (int i = 0; i < 10; ++i) add(fmt::format("train/{}/{}_{}.JPEG", wnid, wnid, i));
    }
  }
  void add_val_folders() {
    for (const char* name : {"val/n01/v_1.JPEG", "val/n02/v_2.JPEG", "val/n03/v_3.JPEG", "val/n03/v_4.JPEG"}) add(name);
  }
  void add_flat_val() {
    for (int i = 1; i <= 4; ++i) add(fmt::format("val/v_{}.JPEG", i));
  }
  static Dataset load_from(const std::string& root, const std::vector<std::string>& more = {}) {
    std::vector<std::string> settings{"root=" + root, "val_size=6", "split_seed=1"};
    settings.insert(settings.end(), more.begin(), more.end());
    return test::load_dataset("imagenet", settings);
  }
  Dataset load(const std::vector<std::string>& more = {}) const { return load_from(root(), more); }
};

// Labels of four images by a file of this text.
std::vector<int64_t> labels(const std::string& text, const std::string& synsets = "") {
  const test::TemporaryFolder folder;
  const auto synsets_file = synsets.empty() ? std::filesystem::path() : folder.write("synsets.txt", synsets);
  return read_imagenet_labels(folder.write("labels.txt", text), synsets_file,
                              {"v_1.JPEG", "v_2.JPEG", "v_3.JPEG", "v_4.JPEG"}, kClasses);
}

const std::vector<int64_t> kExpected = {2, 0, 0, 1};

}  // namespace

TEST_CASE("the official validation images are the test split, others are held out") {
  Imagenet imagenet;
  imagenet.add_val_folders();
  const Dataset dataset = imagenet.load();
  CHECK(dataset.class_names == kClasses);
  CHECK(dataset.normalisation == "imagenet");
  CHECK(dataset.test.labels == std::vector<int64_t>{0, 1, 2, 2});
  CHECK(dataset.test.ids == std::vector<int64_t>{30, 31, 32, 33});
  CHECK_THAT(dataset.test.images->describe(31), Contains("val/n02/v_2.JPEG"));
  CHECK(count_classes(dataset.val, 3) == std::vector<int64_t>{2, 2, 2});
  CHECK(count_classes(dataset.train, 3) == std::vector<int64_t>{8, 8, 8});
  for (const Split* split : {&dataset.train, &dataset.val}) {
    for (size_t i = 0; i < split->ids.size(); ++i) CHECK(split->labels[i] == split->ids[i] / 10);
  }
}

TEST_CASE("ImageNet's folder of another name is named") {
  Imagenet imagenet;
  imagenet.add_val_folders();
  std::filesystem::rename(imagenet.folder / "val", imagenet.folder / "validation");
  CHECK_THROWS_WITH(imagenet.load(), Contains("val/, with") && Contains("/validation' is there"));
}

TEST_CASE("a subset of ImageNet's training images is other data, and all of them what they were") {
  Imagenet imagenet;
  imagenet.add_val_folders();
  const Dataset all = imagenet.load();
  const Dataset twelve = imagenet.load({"train_size=12"});
  CHECK(count_classes(twelve.train, 3) == std::vector<int64_t>{4, 4, 4});
  CHECK(twelve.val.ids == all.val.ids);
  CHECK(twelve.test.ids == all.test.ids);
  CHECK(twelve.digest != all.digest);
  CHECK(all.digest == "a315c5a8d2e42d89afa9c630ce2cd1a234010b564a65897bbb6852e6957a33df");
  CHECK(twelve.digest == "13e3ee5f55556133bbdea63d419b047ac3e8c529787172c140cd81a16c4064a8");
  CHECK_THROWS_WITH(imagenet.load({"val_size=7"}), Contains("data.val_size"));
}

TEST_CASE("validation images in one folder, labelled by a file") {
  Imagenet imagenet;
  imagenet.add_flat_val();
  imagenet.folder.write("truth.txt", std::string("v_1.JPEG n03\nv_2.JPEG n01\nv_3.JPEG n01\nv_4.JPEG n02\n"));
  const Dataset dataset = imagenet.load({"val_labels=truth.txt"});
  CHECK(dataset.test.labels == kExpected);
  imagenet.folder.write("truth.txt", std::string("v_1.JPEG n02\nv_2.JPEG n01\nv_3.JPEG n01\nv_4.JPEG n02\n"));
  CHECK(imagenet.load({"val_labels=" + (imagenet.folder / "truth.txt").string()}).digest != dataset.digest);
}

TEST_CASE("the forms of validation labels") {
  CHECK(labels("v_4.JPEG n02\nval/v_1.JPEG n03\r\n\nv_2.JPEG  n01\nv_3.JPEG\tn01\n") == kExpected);
  CHECK(labels("v_1.JPEG 2\nv_2.JPEG 0\nv_3.JPEG 0\nv_4.JPEG 1\n") == kExpected);
  CHECK(
      labels(
          "ImageId,PredictionString\nv_4,n02 85 1 499 272 \nv_1,n03 1 2 3 4 n03 5 6 7 8 \nv_2,n01 0 0 1 1\nv_3,n01\n") ==
      kExpected);
  CHECK(labels("1\n3\n3\n2\n", "n03\nn02\nn01\n") == kExpected);
}

TEST_CASE("what is wrong with validation labels is said with file and line") {
  CHECK_THROWS_WITH(labels("v_1.JPEG\n"), Contains("labels.txt:1: expected 'FILE WNID' or 'FILE INDEX'"));
  CHECK_THROWS_WITH(labels("v_1.JPEG n04\n"),
                    Contains("labels.txt:1: 'n04' is no folder of train and no index from 0 to 2"));
  CHECK_THROWS_WITH(labels("v_1.JPEG 3\n"), Contains("labels.txt:1: '3' is no folder"));
  CHECK_THROWS_WITH(labels("v_1.JPEG 0\nv_5.JPEG 0\n"), Contains("labels.txt:2: there is no image 'v_5.JPEG'"));
  CHECK_THROWS_WITH(labels("v_1.JPEG 0\nv_1.JPEG 1\n"), Contains("labels.txt:2: 'v_1.JPEG' has a line above"));
  CHECK_THROWS_WITH(labels("v_1.JPEG 0\n"), Contains("labels.txt: no line for 3 of 4 images; the first is 'v_2.JPEG'"));
  CHECK_THROWS_WITH(labels("ImageId,PredictionString\nv_1 n01\n"), Contains("labels.txt:2: expected 'IMAGE,WNID ...'"));
  CHECK_THROWS_WITH(labels("ImageId,PredictionString\nv_1,2 3\n"), Contains("labels.txt:2: '2' is no folder of train"));
  CHECK_THROWS_WITH(labels("ImageId,PredictionString\nv_9,n01\n"), Contains("labels.txt:2: there is no image 'v_9'"));
  CHECK_THROWS_WITH(labels("\n"), Contains("labels.txt") && Contains("is empty"));

  CHECK_THROWS_WITH(labels("1\n3\n3\n2\n"), Contains("data.synsets") && Contains("meta.mat") && Contains("scipy"));
  CHECK_THROWS_WITH(labels("1\n3\n3\n", "n03\nn02\nn01\n"), Contains("has 3 lines, expected 4"));
  CHECK_THROWS_WITH(labels("1\n3\n4\n2\n", "n03\nn02\nn01\n"), Contains("labels.txt:3: expected IDs from 1 to 3"));
  CHECK_THROWS_WITH(labels("1\n3\nx\n2\n", "n03\nn02\nn01\n"),
                    Contains("labels.txt:3: expected an ILSVRC2012_ID, got 'x'"));
  CHECK_THROWS_WITH(labels("1\n3\n3\n2\n", "n03\nn05\nn01\n"), Contains("synsets.txt:2: 'n05' is no folder of train"));
  CHECK_THROWS_WITH(labels("1\n3\n3\n2\n", "n03\nn03\nn01\n"), Contains("synsets.txt:2: 'n03' has a line above"));
}

TEST_CASE("all that is missing of ImageNet is said at once") {
  const test::TemporaryFolder empty;
  const std::string root = empty.path().string();
  CHECK_THROWS_WITH(Imagenet::load_from(root), Contains(root) && Contains("train/") && Contains("val/") &&
                                                   Contains("image-net.org") && Contains("registration"));
  CHECK_THROWS_AS(Imagenet::load_from(root), DataError);
  CHECK_THROWS_WITH(Imagenet::load_from("/no/such/folder"), Contains("/no/such/folder"));

  Imagenet imagenet;
  imagenet.add_flat_val();
  CHECK_THROWS_WITH(imagenet.load(), Contains("data.val_labels") && Contains("LOC_val_solution.csv"));
  CHECK_THROWS_WITH(imagenet.load({"val_labels=truth.txt", "synsets=synsets.txt"}),
                    Contains("truth.txt (data.val_labels)") && Contains("synsets.txt (data.synsets)"));
}

TEST_CASE("a validation folder that is no class is named") {
  Imagenet imagenet;
  imagenet.add_val_folders();
  imagenet.add("val/n04/v.JPEG");
  CHECK_THROWS_WITH(imagenet.load(), Contains("val/n04") && Contains("training split has not"));
}
