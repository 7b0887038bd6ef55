// Every registered data set, and the section data.label_noise, through a configuration.
#include <string>

#include "datasets/label_noise.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/load.h"
#include "src/config/schema.h"
#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

struct Run {
  int64_t seed = 0;
};

config::Config load(const std::vector<std::string>& overrides, const std::filesystem::path& file = {}) {
  config::Schema schema;
  schema.sections.push_back({"", "", {config::key("seed", &Run::seed, 4, "Seed.")}, "", "", {}});
  schema.sections.push_back({"data", "", {}, "name", "fashion_mnist", config::variants_of(test::builtin_datasets())});
  schema.sections.push_back(label_noise_section());
  return config::load(schema, file, overrides);
}

Dataset make(const config::Config& config) {
  return test::builtin_datasets().at(config.get<std::string>("data.name")).make(config);
}

const std::vector<std::string> kSmall = {"data.name=synthetic", "data.train_size=600", "data.val_size=20",
                                         "data.test_size=20"};

std::vector<std::string> small_with(std::vector<std::string> more) {
  more.insert(more.begin(), kSmall.begin(), kSmall.end());
  return more;
}

// The settings that choose a data set, with the keys that have no default.
std::vector<std::string> all_keys_of(const DatasetEntry& entry) {
  std::vector<std::string> settings{"data.name=" + entry.name};
  for (const config::Key& key : entry.keys) {
    const auto* text = std::get_if<std::string>(&key.default_value);
    if (key.non_empty && text && text->empty()) settings.push_back("data." + key.name + "=x");
    if (key.name == "num_classes") settings.push_back("data.num_classes=5");
  }
  return settings;
}

}  // namespace

TEST_CASE("the built-in data sets") {
  CHECK(test::builtin_datasets().names() == std::vector<std::string>{"fashion_mnist", "cifar100", "image_folder",
                                                                     "file_list", "imagenet", "imagenet_lt",
                                                                     "plantnet300k", "features", "synthetic"});
  for (const std::string name : {"fashion_mnist", "cifar100", "synthetic"}) {
    const config::Config config = load({"data.name=" + name});
    CHECK(config.get<std::string>("data.label_noise.kind") == "none");
    CHECK(config.has("data.val_size"));
  }
  CHECK_THROWS_WITH(load({"data.name=file_list"}), Contains("data.root") && Contains("data.train"));
}

TEST_CASE("a data set that is not there says where it looked") {
  for (const std::string name : {"fashion_mnist", "cifar100", "imagenet", "imagenet_lt", "plantnet300k"}) {
    const config::Config config = load({"data.name=" + name, "data.root=/no/such/folder"});
    CHECK_THROWS_WITH(make(config), Contains("/no/such/folder"));
    CHECK_THROWS_AS(make(config), DataError);
  }
}

TEST_CASE("every data set: its config comes back as it was") {
  for (const DatasetEntry& entry : test::builtin_datasets().entries()) {
    CAPTURE(entry.name);
    const config::Config config = load(all_keys_of(entry));
    const test::TemporaryFolder folder;
    CHECK(load({}, folder.write("run.yaml", config.to_yaml())).to_yaml() == config.to_yaml());
  }
}

TEST_CASE("every data set: what it says of itself fits together") {
  for (const DatasetEntry& entry : test::builtin_datasets().entries()) {
    CAPTURE(entry.name);
    CHECK(bool(entry.facts) == (entry.name != "image_folder" && entry.name != "file_list" && entry.name != "features"));
    if (entry.download) {
      CHECK(entry.download->name == entry.name);
      // Where it is put is where configs look.
      const std::string root = load({"data.name=" + entry.name}).get<std::string>("data.root");
      CHECK((root == entry.download->usual_place || root.ends_with("/" + entry.download->folder)));
    }
    if (!entry.facts) continue;
    const auto facts = entry.facts(load({"data.name=" + entry.name}));
    REQUIRE(facts);
    for (const int64_t number : {facts->classes, facts->train, facts->val, facts->test, facts->channels}) {
      CHECK(number > 0);
    }
  }
}

TEST_CASE("facts follow the config") {
  const auto facts_of = [](const std::vector<std::string>& settings) {
    const config::Config config = load(settings);
    return test::builtin_datasets().at(config.get<std::string>("data.name")).facts(config);
  };
  const auto made = facts_of(small_with({"data.image_size=8", "data.channels=1"}));
  const Dataset dataset = make(load(small_with({"data.image_size=8", "data.channels=1"})));
  CHECK(made->classes == dataset.num_classes());
  CHECK(made->train == dataset.train.size());
  CHECK(made->val == dataset.val.size());
  CHECK(made->test == dataset.test.size());
  CHECK(made->size == dataset.height);
  CHECK(made->channels == dataset.channels);

  const auto cifar = facts_of({"data.name=cifar100", "data.val_size=1000"});
  CHECK(cifar->classes == 100);
  CHECK(cifar->train == 49000);
  CHECK(cifar->val == 1000);
  CHECK(cifar->test == 10000);
  CHECK(cifar->size == 32);
  CHECK(facts_of({"data.name=cifar100", "data.train_size=2000"})->train == 2000);
  CHECK(facts_of({"data.name=fashion_mnist"})->channels == 1);
  CHECK(facts_of({"data.name=imagenet"})->train == 1281167 - 50000);
  CHECK(facts_of({"data.name=imagenet", "data.grey=true"})->channels == 1);
  CHECK(facts_of({"data.name=plantnet300k"})->classes == 1081);
  CHECK_FALSE(facts_of({"data.name=plantnet300k", "data.expected.train=any"}));
}

TEST_CASE("the keys of the papers' data sets have the papers' values") {
  const config::Config imagenet = load({"data.name=imagenet"});
  CHECK(imagenet.get<int64_t>("data.val_size") == 50000);
  CHECK(imagenet.get<std::string>("data.split") == "balanced");
  for (const std::string name : {"imagenet", "cifar100", "fashion_mnist"}) {
    CHECK(load({"data.name=" + name}).read<SplitOptions>("data").train_size == SplitOptions::kAll);
  }
  const auto lists = load({"data.name=imagenet_lt"});
  CHECK(lists.get<std::string>("data.train") == "ImageNet_LT_train.txt");
  CHECK(lists.get<int64_t>("data.num_classes") == 1000);
  const auto plants = load({"data.name=plantnet300k", "data.expected.val=any"});
  CHECK(plants.get<int64_t>("data.expected.train") == 243916);
  CHECK(plants.get<int64_t>("data.expected.val") == -1);
  CHECK(load({"data.name=cifar100"}).get<int64_t>("data.val_size") == 5000);
}

TEST_CASE("the synthetic data set and the label noise follow the run's seed where theirs is auto") {
  const auto digests = [](std::vector<std::string> overrides) {
    const config::Config config = load(small_with(std::move(overrides)));
    Dataset dataset = make(config);
    return std::pair(dataset.digest, apply_label_noise(read_label_noise(config), dataset).digest);
  };
  const std::string noise = "data.label_noise.kind=uniform";
  const auto base = digests({noise, "seed=1"});
  CHECK(base == digests({noise, "seed=1", "data.seed=1", "data.label_noise.seed=1"}));
  CHECK(base.first != digests({noise, "seed=2"}).first);
  CHECK(base.second != digests({noise, "seed=2", "data.seed=1"}).second);
  CHECK(base == digests({noise, "seed=2", "data.seed=1", "data.label_noise.seed=1"}));
}

TEST_CASE("label noise takes its keys") {
  const LabelNoiseOptions options = read_label_noise(load(small_with(
      {"data.label_noise.kind=index_block", "data.label_noise.rate=0.25", "data.label_noise.block_size=3", "seed=9"})));
  CHECK(options.kind == "index_block");
  CHECK(options.rate == 0.25);
  CHECK(options.block_size == 3);
  CHECK(options.seed == 9);
  CHECK_THROWS_AS(load({"data.label_noise.kind=uniform", "data.label_noise.rate=1.5"}), ConfigError);

  const LabelNoiseOptions confusion = read_label_noise(
      load(small_with({"data.label_noise.kind=confusion", "data.label_noise.matrix=m.txt", "seed=9"})));
  CHECK(confusion.matrix == "m.txt");
  CHECK(confusion.seed == 9);
  CHECK_THROWS_WITH(load({"data.label_noise.kind=confusion"}), Contains("data.label_noise.matrix"));
}

TEST_CASE("superclass noise on a data set without superclasses tells the fix") {
  const config::Config config = load(small_with({"data.label_noise.kind=superclass"}));
  Dataset dataset = make(config);
  CHECK_NOTHROW(apply_label_noise(read_label_noise(config), dataset));
  dataset.superclass_of.clear();
  CHECK_THROWS_WITH(apply_label_noise(read_label_noise(config), dataset),
                    Contains("data.label_noise.kind") && Contains("index_block or uniform"));
}
