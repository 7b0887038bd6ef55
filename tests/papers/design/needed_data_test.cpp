#include "src/papers/design/needed_data.h"

#include <utility>

#include "datasets/calibration_split.h"
#include "datasets/load_data.h"
#include "datasets/long_tail.h"
#include "src/config/load.h"
#include "src/config/schema.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
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

struct InputSize {
  int64_t input_size = 0;
};

std::optional<DataFacts> facts(const std::vector<std::string>& settings) {
  const config::Keys keys =
      config::joined(ClassOptions::keys(), LongTailOptions::keys(), CalibrationOptions::keys(),
                     config::Keys{config::key("input_size", &InputSize::input_size, 0, "Of the model.")});
  const config::Section data{"data", "", keys, "name", "cifar100", config::variants_of(test::builtin_datasets())};
  return facts_of(test::builtin_datasets(), config::load({{data}, {}}, {}, settings));
}

}  // namespace

TEST_CASE("sizes are those that are published, less what is held out") {
  const DataFacts cifar = *facts({});
  CHECK(cifar.classes == 100);
  CHECK(cifar.train == 45'000);
  CHECK(cifar.val == 5000);
  CHECK(cifar.test == 10'000);
  CHECK(cifar.size == 32);
  CHECK(facts({"data.input_size=64"})->size == 64);
  CHECK(facts({"data.calibration_share=0.3"})->val == 3500);
  CHECK(facts({"data.calibration_share=0.3"})->calibration == 1500);
  CHECK(facts({"data.name=imagenet"})->size == 224);
}

TEST_CASE("a long tail has as many images as data.long_tail leaves") {
  Dataset dataset;
  dataset.class_names.resize(100);
  for (int64_t i = 0; i < 45'000; ++i) {
    dataset.train.ids.push_back(i);
    dataset.train.labels.push_back(i % 100);
  }
  apply_long_tail({100, 1}, dataset);
  CHECK(facts({"data.long_tail.imbalance=100", "data.val_size=5000"})->train == dataset.train.size());
}

TEST_CASE("data of the user's own are not known beforehand") {
  CHECK_FALSE(facts({"data.name=image_folder", "data.root=x"}).has_value());
  CHECK_FALSE(facts({"data.only_superclasses=[flowers]"}).has_value());
  CHECK_FALSE(facts({"data.superclass_share=0.1"}).has_value());
}

TEST_CASE("what a run needs is named, and what of it is missing") {
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
