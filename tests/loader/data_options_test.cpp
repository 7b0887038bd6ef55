#include "src/loader/data_options.h"

#include <algorithm>
#include <thread>

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

LoaderOptions load(const std::vector<std::string>& overrides) {
  config::Schema schema;
  schema.sections.push_back({"data", "", loader_keys(test::builtin_datasets()), "", "", {}});
  return config::load(schema, "", overrides).read<LoaderOptions>("data");
}

}  // namespace

TEST_CASE("auto follows batch size and cores") {
  const LoaderOptions options = load({"data.batch_size=40"});
  CHECK(options.resolved_eval_batch_size() == 40);
  CHECK(options.resolved_workers(100000) == 1);
  CHECK(options.resolved_workers(0) == static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency())));
}

TEST_CASE("what is set is taken") {
  const LoaderOptions options = load({"data.eval_batch_size=7", "data.workers=3", "data.normalisation=cifar100",
                                      "data.drop_last=true", "data.prefetch=2"});
  CHECK(options.resolved_eval_batch_size() == 7);
  CHECK(options.resolved_workers(100000) == 3);
  CHECK(options.normalisation == "cifar100");
  CHECK(options.drop_last);
  CHECK(options.prefetch == 2);
}

TEST_CASE("values out of range are refused") {
  for (const char* wrong : {"data.batch_size=0", "data.workers=0", "data.prefetch=0", "data.augmentation.pad=-1",
                            "data.normalisation=cifar", "data.pipeline=imagenet2019", "data.resize_size=3",
                            "data.augmentation.flip=yes", "data.on_bad_image=stop"}) {
    CHECK_THROWS_AS(load({wrong}), ConfigError);
  }
}
