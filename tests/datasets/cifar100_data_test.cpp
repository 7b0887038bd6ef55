#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

namespace {

std::string root() {
  return test::environment("SETTRAIN_TEST_DATA") + "/cifar-100-binary";
}

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream stream(root() + "/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

Dataset load(const std::string& folder, std::vector<std::string> settings) {
  settings.push_back("root=" + folder);
  return test::load_dataset("cifar100", settings);
}

}  // namespace

TEST_CASE("the real CIFAR-100", "[data]") {
  SKIP_UNLESS(std::filesystem::exists(root()), "SETTRAIN_TEST_DATA has no cifar-100-binary");
  const Dataset dataset = load(root(), {"split=balanced"});
  CHECK(dataset.class_names == lines_of("fine_label_names.txt"));
  CHECK(dataset.superclass_names == lines_of("coarse_label_names.txt"));
  CHECK(count_classes(dataset.train, 100) == std::vector<int64_t>(100, 450));
  CHECK(count_classes(dataset.val, 100) == std::vector<int64_t>(100, 50));
  CHECK(count_classes(dataset.test, 100) == std::vector<int64_t>(100, 100));
  const std::vector<int64_t> first(dataset.test.labels.begin(), dataset.test.labels.begin() + 5);
  CHECK(first == std::vector<int64_t>{49, 33, 72, 51, 71});
  Image image;
  dataset.train.images->read(0, image);
  CHECK(std::accumulate(image.pixels.begin(), image.pixels.end(), 0) == 424846);  // computed from the file

  std::vector<int64_t> ids = dataset.train.ids;
  ids.insert(ids.end(), dataset.val.ids.begin(), dataset.val.ids.end());
  std::sort(ids.begin(), ids.end());
  REQUIRE(ids.size() == 50000);
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());

  const Dataset uniform = load(root(), {});
  CHECK(uniform.val.size() == 5000);
  CHECK(count_classes(uniform.val, 100) != std::vector<int64_t>(100, 50));
  CHECK(uniform.digest != dataset.digest);

  const Dataset subset = load(root(), {"train_size=10000"});
  CHECK(count_classes(subset.train, 100) == std::vector<int64_t>(100, 100));
  CHECK(subset.val.ids == uniform.val.ids);
  CHECK(subset.digest != uniform.digest);
  // As it was before there were subsets: checkpoints are resumed by it.
  CHECK(uniform.digest == "5ecffd21deac776f784c7e79733e0bbdca81c0788ec2e0f4f0c5b59a7ba7737c");
}

TEST_CASE("CIFAR-100 with one changed byte is taken only without verification", "[data][slow]") {
  SKIP_UNLESS(std::filesystem::exists(root()), "SETTRAIN_TEST_DATA has no cifar-100-binary");
  const test::TemporaryFolder folder;
  for (const char* name : {"train.bin", "test.bin"}) std::filesystem::copy_file(root() + "/" + name, folder / name);
  const auto overwrite = [&](std::streamoff at, char byte) {
    std::fstream(folder / "test.bin", std::ios::in | std::ios::out | std::ios::binary).seekp(at).put(byte);
  };
  overwrite(3073, '\x55');
  CHECK_THROWS_WITH(load(folder.path().string(), {}),
                    Catch::Contains("test.bin") && Catch::Contains("data.verify: false"));
  CHECK(load(folder.path().string(), {"verify=false"}).test.size() == 10000);
  overwrite(0, '\x01');  // record 0 is a mountain, no fish
  CHECK_THROWS_WITH(load(folder.path().string(), {"verify=false"}),
                    Catch::Contains("record 0") && Catch::Contains("mountain"));
}
