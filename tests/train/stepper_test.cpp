#include "src/train/stepper.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/train/image_folders.h"

namespace settrain {
namespace {

using Catch::Contains;

// The numbers of images in the batches of an epoch.
std::vector<int64_t> batch_sizes(StepLoader& loader, int64_t epoch) {
  std::vector<int64_t> sizes;
  loader.start_epoch(epoch);
  for (StepBatches step = loader.next(); step.count > 0; step = loader.next()) {
    for (const Batch& batch : step.own) sizes.push_back(batch.size());
  }
  return sizes;
}

// 6 images in batches of 2, two of which cannot be read.
struct BadImages : test::SmallFolder {
  BadImages() : SmallFolder(2) {
    write("train/ash/0.bmp", "no image");
    write("train/oak/1.bmp", "nor this");
  }
};

const std::vector<std::string> kSkip{"data.on_bad_image=skip", "data.batch_size=2"};

TEST_CASE("a batch of one image is left out where the network cannot be trained on it, and counted") {
  const BadImages folder;
  std::vector<std::string> settings = kSkip;
  settings.emplace_back("model.name=resnet18");
  const Experiment run = folder.run(settings);
  StepLoader loader(run);
  int64_t ones = 0, empty = 0;
  const std::string log = test::logged([&] {
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      const std::vector<int64_t> sizes = batch_sizes(loader, epoch);
      REQUIRE(sizes.size() == 3);
      CHECK(std::ranges::count(sizes, 1) == 0);
      const auto whole = std::ranges::count(sizes, 2);
      CHECK((whole == 1 || whole == 2));  // the bad images in two batches, or in one
      ones += whole == 1 ? 2 : 0;
      empty += whole == 2 ? 1 : 0;
    }
  });
  REQUIRE(ones > 0);
  REQUIRE(empty > 0);
  CHECK(run.loader.skipped->batches_of_one() == ones);
  const std::string warning = "a training batch of which a single image";
  CHECK_THAT(log, Contains(warning));
  CHECK(log.find(warning) == log.rfind(warning));
}

TEST_CASE("a batch of one image stays where the network can be trained on it") {
  const BadImages folder;
  const Experiment run = folder.run(kSkip);
  StepLoader loader(run);
  int64_t images = 0;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    for (const int64_t size : batch_sizes(loader, epoch)) images += size;
  }
  CHECK(images == 5 * 4);
  CHECK(run.loader.skipped->batches_of_one() == 0);
}

TEST_CASE("a hundred training images in a row that cannot be read are no few bad ones") {
  const test::SmallFolder folder(40);
  for (const char* name : {"ash", "elm", "oak"}) {
    for (int i = 0; i < 40; ++i) folder.write(fmt::format("train/{}/{}.bmp", name, i), "no image");
  }
  const Experiment run = folder.run(kSkip);
  StepLoader loader(run);
  CHECK_THROWS_WITH(batch_sizes(loader, 0), Contains("100 training images in a row"));
}

TEST_CASE("a loader whose every epoch has a batch of one image is refused for a network that cannot take it") {
  const test::SmallFolder folder(3);  // 9 images in batches of 4
  const Experiment run = folder.run({"model.name=resnet18"});
  CHECK_THROWS_WITH(StepLoader(run), Contains("data.drop_last"));
  CHECK_NOTHROW(StepLoader(folder.run({"model.name=resnet18", "data.drop_last=true"})));
}

}  // namespace
}  // namespace settrain
