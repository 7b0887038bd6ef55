#include "src/inference/guarantee.h"

#include <ATen/ATen.h>

#include "src/config/load.h"
#include "src/train/experiment_schema.h"
#include "src/train/selection.h"
#include "tests/inference/stored_run.h"
#include "tests/support/catch2.h"

namespace settrain {

using Catch::Contains;

TEST_CASE("images that splits share leave no guarantee to the rules that they calibrate") {
  Experiment run{.config = config::load(experiment_schema(test::builtin_registries()), {}, {}), .device = at::kCPU};
  Checkpoint weights;
  const auto why = [&](const std::string& split, const std::string& one, const std::string& other,
                       bool with_test = true) {
    run.dataset.shared_images = {{.split = one, .other = other, .count = 12, .first = "a", .first_other = "b"}};
    return why_no_guarantee(run, weights, split, with_test);
  };
  const std::string own = why("val", "train", "test");  // of every val, whatever is shared
  CHECK_FALSE(own.empty());
  CHECK(why("calibration", "train", "test").empty());
  CHECK(why("calibration", "val", "test").empty());
  for (const char* other : {"train", "val"})
    CHECK(why("calibration", other, "calibration") == std::string("12 images of calibration are also in ") + other);
  CHECK(why("calibration", "calibration", "test") == "12 images of test are also in calibration");
  CHECK(why("calibration", "calibration", "test", /*with_test=*/false).empty());
  CHECK(why("calibration", "train", "calibration", /*with_test=*/false) != "");
  CHECK(why("val", "val", "calibration") == own);
  CHECK(why("val", "val", "test") == own + "; 12 images of test are also in val");
  CHECK(why("test", "calibration", "test").empty());
  CHECK(why("test", "train", "test") == "12 images of test are also in train");
  CHECK(why("train", "train", "test") == "the model was trained on these images");

  // Other images than those that the run kept apart may have chosen its epoch.
  run.changed_splits = {{"test", false}};
  CHECK(why("calibration", "train", "test").empty());
  run.changed_splits = {{"calibration", true}};  // the same files, repaired
  CHECK(why("calibration", "train", "test").empty());
  run.changed_splits = {{"calibration", false}};
  CHECK_FALSE(why("calibration", "train", "test").empty());
  run.changed_splits.clear();

  // The checkpoint knows which splits chose its epoch, and images of these are known by another split, too.
  const auto selects_on = [&](const std::string& metric) {
    weights.tensors = {{selection_tensor(metric), at::zeros({2}, at::kDouble)}};
  };
  selects_on("val/top1");
  CHECK(why("test", "calibration", "test").empty());
  selects_on("test/top1");
  CHECK_THAT(why("test", "calibration", "test"), Contains("test/top1"));
  CHECK(why("calibration", "train", "test").empty());
  CHECK_FALSE(why("calibration", "calibration", "test", /*with_test=*/false).empty());
  // With no calibration images of their own, rules for test images are calibrated on validation.
  selects_on("test/size@conformal:lac:0.1");
  CHECK(why("calibration", "train", "test").empty());
  run.dataset.calibration.ids = {1};
  CHECK_THAT(why("calibration", "train", "test"), Contains("test/size@conformal:lac:0.1"));
}

}  // namespace settrain
