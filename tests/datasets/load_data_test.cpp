// In which order the parts of the section `data` change a data set.
#include "datasets/load_data.h"

#include <memory>
#include <string>
#include <vector>

#include "datasets/calibration_split.h"
#include "datasets/label_noise.h"
#include "datasets/long_tail.h"
#include "datasets/validation_split.h"
#include "src/config/load.h"
#include "src/config/schema.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

// 12 samples of each of 3 classes, in turns; 2 of each are held out.
Dataset make_turns(const config::Config& config) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 36; ++i) labels.push_back(i % 3);
  const HeldOut held_out = hold_out(labels, 3, config.read<SplitOptions>("data"));
  const auto images = std::make_shared<MemoryImages>(std::vector<uint8_t>(labels.size()), 1, 1, 1);
  Dataset dataset;
  dataset.class_names = {"a", "b", "c"};
  set_superclasses({"early", "late", "early"}, dataset);
  dataset.train = make_split("train", images, held_out.train, labels);
  dataset.val = make_split("val", images, held_out.val, labels);
  return dataset;
}

std::vector<int64_t> train_counts(std::vector<std::string> overrides) {
  DatasetRegistry registry("data set");
  registry.add({"turns", "Labels in turns.", SplitOptions::keys(6, "balanced"), make_turns});
  const config::Keys keys = config::joined(ClassOptions::keys(), LongTailOptions::keys(), CalibrationOptions::keys());
  config::Schema schema;
  schema.sections.push_back({"data", "", keys, "name", "turns", config::variants_of(registry)});
  schema.sections.push_back(label_noise_section());
  const Dataset dataset = load_data(registry, config::load(schema, "", overrides)).dataset;
  return count_classes(dataset.train, dataset.num_classes());
}

}  // namespace

TEST_CASE("a long tail is made of the subset, not the subset of a long tail") {
  CHECK(train_counts({}) == std::vector<int64_t>{10, 10, 10});
  CHECK(train_counts({"data.train_size=24"}) == std::vector<int64_t>{8, 8, 8});
  CHECK(train_counts({"data.long_tail.imbalance=4"}) == std::vector<int64_t>{10, 5, 3});
  CHECK(train_counts({"data.train_size=24", "data.long_tail.imbalance=4"}) == std::vector<int64_t>{8, 4, 2});
}

TEST_CASE("a long tail is made of the superclasses that stay") {
  CHECK(train_counts({"data.only_superclasses=[early]"}) == std::vector<int64_t>{10, 10});
  CHECK(train_counts({"data.only_superclasses=[early]", "data.long_tail.imbalance=5"}) == std::vector<int64_t>{10, 2});
}
