#include "src/loader/normalisation.h"

#include <catch2/catch.hpp>

#include "src/core/error.h"

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

TEST_CASE("auto is the data set's own", "[fast]") {
  CHECK(normalisation_for("auto", with_channels(3, "cifar10")).mean ==
        normalisation_for("cifar10", with_channels(3, "none")).mean);
  CHECK(normalisation_for("imagenet", with_channels(3, "cifar10")).std == std::vector<float>{0.229F, 0.224F, 0.225F});
}

TEST_CASE("none leaves pixels in [0, 1] for any number of channels", "[fast]") {
  const Normalisation none = normalisation_for("none", with_channels(2, "none"));
  CHECK(none.mean == std::vector<float>{0, 0});
  CHECK(none.std == std::vector<float>{1, 1});
}

TEST_CASE("every name works for a data set of its channels", "[fast]") {
  for (const std::string& name : normalisation_names()) {
    const int64_t channels = name == "fashion_mnist" ? 1 : 3;
    const Normalisation statistics = normalisation_for(name, with_channels(channels, "none"));
    CHECK(std::ssize(statistics.mean) == channels);
    CHECK(std::ssize(statistics.std) == channels);
    for (const float std : statistics.std) CHECK(std > 0);
  }
}

TEST_CASE("statistics of other channels are refused", "[fast]") {
  CHECK_THROWS_WITH(normalisation_for("imagenet", with_channels(1, "none")), Catch::Contains("data.normalisation") &&
                                                                                 Catch::Contains("3 channels") &&
                                                                                 Catch::Contains("some_data"));
  CHECK_THROWS_AS(normalisation_for("imagenet", with_channels(1, "none")), ConfigError);
}
