#include "src/core/error.h"
#include "src/loader/data_options.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

Dataset with_channels(int64_t channels, const std::string& normalisation) {
  Dataset dataset;
  dataset.name = "some_data";
  dataset.channels = channels;
  dataset.normalisation = normalisation;
  return dataset;
}

}  // namespace

TEST_CASE("auto is the data set's own") {
  CHECK(normalisation_for(test::builtin_datasets(), "auto", with_channels(3, "cifar10")).mean ==
        normalisation_for(test::builtin_datasets(), "cifar10", with_channels(3, "none")).mean);
  CHECK(normalisation_for(test::builtin_datasets(), "imagenet", with_channels(3, "cifar10")).std ==
        std::vector<float>{0.229F, 0.224F, 0.225F});
}

TEST_CASE("none leaves pixels in [0, 1] for any number of channels") {
  const Normalisation none = normalisation_for(test::builtin_datasets(), "none", with_channels(2, "none"));
  CHECK(none.mean == std::vector<float>{0, 0});
  CHECK(none.std == std::vector<float>{1, 1});
}

TEST_CASE("every data set's statistics have a name for its images") {
  CHECK(normalisation_names(test::builtin_datasets()) == std::vector<std::string>{"none", "fashion_mnist", "cifar10",
                                                                                  "cifar100", "imagenet", "half",
                                                                                  "clip", "efficientnet_lite"});
  for (const DatasetEntry& entry : test::builtin_datasets().entries()) {
    for (const NamedNormalisation& named : entry.statistics) {
      const int64_t channels = std::ssize(named.statistics.mean);
      const Normalisation found =
          normalisation_for(test::builtin_datasets(), named.name, with_channels(channels, "none"));
      CHECK(found.mean == named.statistics.mean);
      CHECK(std::ssize(found.std) == channels);
      for (const float std : found.std) CHECK(std > 0);
    }
  }
}

TEST_CASE("statistics of other channels are refused") {
  CHECK_THROWS_WITH(
      normalisation_for(test::builtin_datasets(), "imagenet", with_channels(1, "none")),
      Catch::Contains("data.normalisation") && Catch::Contains("3 channels") && Catch::Contains("some_data"));
  CHECK_THROWS_AS(normalisation_for(test::builtin_datasets(), "imagenet", with_channels(1, "none")), ConfigError);
}
