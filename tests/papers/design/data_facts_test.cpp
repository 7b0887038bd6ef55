#include "src/papers/design/data_facts.h"

#include <catch2/catch.hpp>
#include <utility>

#include "datasets/long_tail.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

config::Config configured(const std::vector<std::pair<std::string, config::Value>>& given) {
  std::vector<config::Entry> entries;
  for (const auto& [path, value] : given) {
    config::Key key;
    key.name = path.substr(path.rfind('.') + 1);
    entries.push_back({path, key, value, {"default"}});
  }
  return config::Config(std::move(entries));
}

config::Config cifar100(double imbalance, int64_t val = 5000, int64_t input_size = 0) {
  return configured({{"data.name", std::string("cifar100")},
                     {"data.val_size", val},
                     {"data.long_tail.imbalance", imbalance},
                     {"data.input_size", input_size}});
}

}  // namespace

TEST_CASE("sizes are those that are published, less what is held out", "[fast]") {
  const DataFacts facts = *facts_of(cifar100(1));
  CHECK(facts.classes == 100);
  CHECK(facts.train == 45'000);
  CHECK(facts.val == 5000);
  CHECK(facts.test == 10'000);
  CHECK(facts.size == 32);
  CHECK(facts_of(cifar100(1, 5000, 64))->size == 64);
}

TEST_CASE("a long tail has as many images as data.long_tail leaves", "[fast]") {
  Dataset dataset;
  dataset.class_names.resize(100);
  for (int64_t i = 0; i < 50'000; ++i) {
    dataset.train.ids.push_back(i);
    dataset.train.labels.push_back(i % 100);
  }
  apply_long_tail({100, 1}, dataset);
  CHECK(facts_of(cifar100(100, 0))->train == dataset.train.size());
}

TEST_CASE("data of the user's own are not known beforehand", "[fast]") {
  CHECK_FALSE(facts_of(configured({{"data.name", std::string("image_folder")}})).has_value());
}

TEST_CASE("what a run needs is named, and what of it is missing", "[fast]") {
  const test::TemporaryFolder folder;
  const auto needing = [&](const std::string& root, const std::string& weights) {
    return configured({{"data.name", std::string("cifar100")}, {"data.root", root}, {"model.pretrained", weights}});
  };
  const std::string data = folder.write("data/train.bin", std::string("images")).parent_path();
  const std::string weights = folder.write("resnet.pth", std::string("weights"));
  CHECK(missing_files(needing(data, "none")).empty());
  CHECK(missing_files(needing(data, weights)).empty());
  CHECK_FALSE(needed_files(needing(data, "none")).weights.has_value());
  const config::Config nothing = needing(folder / "nowhere", folder / "none.pth");
  CHECK(missing_files(nothing).size() == 2);
  CHECK(needed_files(nothing).data == "cifar100 (" + (folder / "nowhere").string() + ")");
  CHECK(needed_files(nothing).weights == (folder / "none.pth").string());
}

}  // namespace settrain
