#include "src/data_tools/starter.h"

#include "tests/data_tools/class_folders.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

constexpr StarterCost kCost{160, 12, "size reason", "epochs reason"};

// The config for a folder with classes of these numbers of images.
std::string starter_of(int many, int few, StarterFacts facts, const std::vector<KnownWeights>& weights) {
  const test::TemporaryFolder folder;
  test::add_class(folder, "trees/oak", many);
  test::add_class(folder, "trees/ash", few);
  SplitRequest request;
  request.folder = folder / "trees";
  request.out = folder / "lists";
  const FolderSplit split = split_folder(request.folder, request.rule, request.seed);
  write_split(request, split);
  const StarterFacts counted = starter_facts(request.folder, split);
  facts.train = counted.train;
  facts.fewest = counted.fewest;
  facts.most = counted.most;
  return starter_config(request, split, facts, choose_network(facts, weights), kCost);
}

}  // namespace

TEST_CASE("a folder without weights begins with a small network, at a size that its images have") {
  const StarterNetwork network = choose_network({.short_side = 50}, {});
  CHECK(network.model == "resnet20");
  CHECK(network.input_sizes == std::vector<int64_t>{48, 32});
  CHECK(choose_network({.short_side = 10}, {}).input_sizes == std::vector<int64_t>{32});
  CHECK(choose_network({.short_side = 500}, {}).input_sizes.front() == 64);
  CHECK(choose_network({.short_side = 500, .has_gpu = true}, {}).input_sizes.front() == 128);
  const std::string config = starter_of(30, 25, {}, {});
  for (const char* line : {"pipeline: imagenet", "name: sgd", "loss: {name: cross_entropy}", "select: [val/top1]",
                           "epochs: 12", "# epochs reason", "normalisation: imagenet", "on_bad_image: skip"}) {
    CHECK_THAT(config, Contains(line));
  }
}

TEST_CASE("with weights a CPU trains the head alone, and a GPU all") {
  const std::vector<KnownWeights> weights{{"resnet50", "w/resnet50.pth"}, {"efficientnet_lite0", "w/lite0.pth"}};
  const StarterNetwork on_cpu = choose_network({}, weights), on_gpu = choose_network({.has_gpu = true}, weights);
  CHECK(on_cpu.model == "efficientnet_lite0");
  CHECK(on_cpu.trains_head_alone);
  CHECK(on_gpu.model == "resnet50");
  CHECK_FALSE(on_gpu.trains_head_alone);
  const std::string head = starter_of(60, 6, {.is_verified = true}, weights);
  for (const char* line : {"trainable: [head]", "pipeline: plain", "lite0.pth", "loss: {name: logit_adjusted}",
                           "the largest class has 42 training images, the smallest 3", "select: [val/macro_top1]"}) {
    CHECK_THAT(head, Contains(line));
  }
  CHECK_THAT(head, !Contains("layer_decay") && !Contains("on_bad_image"));
  CHECK_THAT(starter_of(60, 6, {.has_gpu = true}, weights), Contains("layer_decay") && !Contains("trainable"));
}

TEST_CASE("no batch of a starter has a single image") {
  // 66 of 96 images train: 64 in two batches, and two.
  CHECK_THAT(starter_of(48, 48, {}, {}), Contains("batch_size: 32"));
  // 54 and 11 train, so batches of 32 would leave one.
  CHECK_THAT(starter_of(81, 17, {}, {}), Contains("batch_size: 31"));
}

TEST_CASE("a run's name has no letters that a shell or a path would mind") {
  CHECK(starter_name("photos/my trees") == "my_trees");
  CHECK(starter_name("photos/trees/") == "trees");
  CHECK(starter_name("./-x") == "x");
  CHECK(starter_name("/") == "photographs");
}
