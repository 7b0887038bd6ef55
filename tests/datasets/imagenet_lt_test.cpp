// ImageNet-LT: a file_list with defaults, whose classes are named by folders.
#include "src/core/error.h"
#include "tests/datasets/tiny_images.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

struct ImagenetLtLists : test::TinyImages {
  ImagenetLtLists() {
    for (const char* name : {"train/n01/n01_1.JPEG", "train/n01/n01_2.JPEG", "train/n02/n02_1.JPEG",
                             "train/n02/n02_2.JPEG", "val/n01/v_1.JPEG", "val/n02/v_2.JPEG", "flat.JPEG"}) {
      add(name);
    }
    folder.write("ImageNet_LT_train.txt", std::string("train/n02/n02_1.JPEG 0\ntrain/n01/n01_1.JPEG 1\n"));
    folder.write("ImageNet_LT_val.txt", std::string("train/n01/n01_2.JPEG 1\n"));
    folder.write("ImageNet_LT_test.txt", std::string("val/n01/v_1.JPEG 1\nval/n02/v_2.JPEG 0\n"));
  }
  Dataset load(int64_t num_classes = 2) const {
    return test::load_dataset("imagenet_lt", {"root=" + root(), "num_classes=" + std::to_string(num_classes)});
  }
};

}  // namespace

TEST_CASE("ImageNet-LT's classes are named by the folders of the training images") {
  const ImagenetLtLists lists;
  const Dataset dataset = lists.load();
  CHECK(dataset.name == "imagenet_lt");
  CHECK(dataset.normalisation == "imagenet");
  CHECK(dataset.class_names == std::vector<std::string>{"n02", "n01"});
  CHECK(dataset.class_keys == std::vector<std::string>{"0", "1"});
  CHECK(dataset.train.labels == std::vector<int64_t>{0, 1});
  CHECK(dataset.val.labels == std::vector<int64_t>{1});
  CHECK(dataset.test.ids == std::vector<int64_t>{3, 4});
}

TEST_CASE("folders that do not tell the classes apart name none") {
  const ImagenetLtLists lists;
  const auto names = [&](const std::string& train, int64_t num_classes = 2) {
    lists.folder.write("ImageNet_LT_train.txt", train);
    return lists.load(num_classes).class_names;
  };
  const std::vector<std::string> numbers = {"class_0", "class_1"};
  CHECK(names("train/n02/n02_1.JPEG 0\ntrain/n01/n01_1.JPEG 0\ntrain/n02/n02_2.JPEG 1\n") == numbers);
  CHECK(names("train/n02/n02_1.JPEG 0\ntrain/n02/n02_2.JPEG 1\n") == numbers);
  CHECK(names("train/n02/n02_1.JPEG 0\nflat.JPEG 1\n") == numbers);
  CHECK(names("train/n02/n02_1.JPEG 0\ntrain/n01/n01_1.JPEG 1\n", 3) ==
        std::vector<std::string>{"class_0", "class_1", "class_2"});
}

TEST_CASE("all that is missing of ImageNet-LT is said at once") {
  const ImagenetLtLists lists;
  for (const char* name : {"train", "val", "ImageNet_LT_train.txt", "ImageNet_LT_test.txt"}) {
    std::filesystem::remove_all(lists.folder / name);
  }
  CHECK_THROWS_WITH(lists.load(), Contains(lists.root()) && Contains("ImageNet_LT_train.txt (data.train)") &&
                                      Contains("ImageNet_LT_test.txt (data.test)") && Contains("train/") &&
                                      Contains("OpenLongTailRecognition") && Contains("image-net.org"));
  CHECK_THROWS_AS(lists.load(), DataError);
}

TEST_CASE("an image of ImageNet-LT that is not there is named by its line") {
  const ImagenetLtLists lists;
  std::filesystem::remove(lists.folder / "val/n02/v_2.JPEG");
  CHECK_THROWS_WITH(lists.load(), Contains("ImageNet_LT_test.txt:2: ") && Contains("val/n02/v_2.JPEG"));
}
