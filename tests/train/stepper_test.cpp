#include "src/train/stepper.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "models/cost.h"
#include "models/model.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/support/skip.h"
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

TEST_CASE("the rates that fall by layer, and what weight decay spares, are timm's") {
  const CostCounter without_storage;
  std::ifstream file(test::golden_path("layer_decay.txt"));
  std::map<std::string, std::map<std::string, std::pair<double, bool>>> theirs;  // by model and parameter
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string model, parameter;
    double factor = 0;
    bool decays = false;
    words >> model >> factor >> decays;
    while (words >> parameter) theirs[model][parameter] = {factor, decays};
  }
  CHECK(theirs.size() == 11);
  const Registries& registries = test::builtin_registries();
  for (const auto& [name, expected] : theirs) {
    CAPTURE(name);
    const config::Config config = config::load(
        experiment_schema(registries), {},
        {"model.name=" + name, "optimizer.layer_decay=0.75", "optimizer.no_decay=[one_dimensional, token]"});
    const ModelEntry& entry = registries.models.at(name);
    const auto model = entry.make(config, entry.usual);
    OptimizerEntry optimizer = sgd_entry();
    optimizer.make = [&](const config::Config&, const TrainedParameters& trained) {
      CHECK(trained.size() == expected.size());
      for (const TrainedParameter& parameter : trained) {
        CAPTURE(parameter.name);
        REQUIRE(expected.contains(parameter.name));
        const auto& [factor, decays] = expected.at(parameter.name);
        CHECK(parameter.lr_factor == Approx(factor).epsilon(1e-12));
        CHECK(parameter.decays == decays);
      }
      return nullptr;
    };
    Optimizer::Named parameters;
    for (const auto& item : model->named_parameters()) parameters.emplace_back(item.key(), item.value());
    make_optimizer(optimizer, config, parameters, {model->head_parameters(), model->layers_below_head()});
  }
}

TEST_CASE("a step moves each layer as far as its learning rate says") {
  const test::SmallFolder folder(2);
  const auto moved = [&](const std::string& setting) {
    Experiment run = folder.run(
        {"optimizer.momentum=0", "optimizer.nesterov=false", "optimizer.weight_decay=0", "data.batch_size=6", setting});
    std::map<std::string, at::Tensor> before, changes;
    for (const auto& item : run.model->named_parameters()) before[item.key()] = item.value().detach().clone();
    StepLoader loader(run);
    Stepper stepper(run, loader.steps_per_epoch());
    loader.start_epoch(0);
    stepper.take(0, loader.next());
    for (const auto& item : run.model->named_parameters()) {
      changes[item.key()] = (item.value().detach() - before[item.key()]).to(at::kDouble);
    }
    return changes;
  };
  auto even = moved("optimizer.layer_decay=1"), falling = moved("optimizer.layer_decay=0.5");
  for (const auto& [name, factor] : std::vector<std::pair<std::string, double>>{{"fc.weight", 1},
                                                                                {"layer3.0.conv2.weight", 0.5},
                                                                                {"layer1.0.conv1.weight", 0.125},
                                                                                {"conv1.weight", 0.0625}}) {
    CAPTURE(name);
    REQUIRE(even[name].norm().item<double>() > 0);
    CHECK((falling[name].norm() / even[name].norm()).item<double>() == Approx(factor).epsilon(1e-3));
  }
}

}  // namespace
}  // namespace settrain
