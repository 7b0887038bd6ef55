// What is checked before a training begins.
#include "src/train/experiment.h"

#include <memory>
#include <string>

#include "datasets/image_files.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

// An experiment that has data and no model.
Experiment with_data(const std::vector<int64_t>& train_counts) {
  Experiment run{.config = config::load(experiment_schema(test::builtin_registries()), {}, {}), .device = at::kCPU};
  run.train.epochs = 1;
  run.train_counts = train_counts;
  for (size_t c = 0; c < train_counts.size(); ++c) run.dataset.class_names.push_back("class_" + std::to_string(c));
  run.loader.options.on_bad_image = "error";
  return run;
}

}  // namespace

TEST_CASE("a training on images of one class is refused") {
  CHECK_NOTHROW(check_training_data(with_data({0, 1, 2})));
  Experiment run = with_data({0, 0, 7});
  CHECK_THROWS_AS(check_training_data(run), DataError);
  CHECK_THROWS_WITH(check_training_data(run), Contains("one class, class_2"));
  run.train.epochs = 0;  // nothing is trained
  CHECK_NOTHROW(check_training_data(run));
}

TEST_CASE("empty files of each split and of the images for thresholds are refused, unless bad images are left out") {
  const test::TemporaryFolder folder;
  folder.write("empty.png", std::string());
  FileTable files(folder.path());
  files.add("empty.png");
  CHECK_FALSE(files.measure());
  const Split split{
      .name = "some", .images = std::make_shared<ImageFiles>(files, ImageFileOptions{}), .ids = {0}, .labels = {0}};
  for (Split Dataset::*member : {&Dataset::train, &Dataset::val, &Dataset::calibration, &Dataset::test}) {
    Experiment run = with_data({1, 1});
    run.dataset.*member = split;
    CHECK_THROWS_WITH(check_training_data(run), Contains("some: 1: ") && Contains("empty.png"));
    run.loader.options.on_bad_image = "skip";
    CHECK_NOTHROW(check_training_data(run));
  }
  Experiment run = with_data({1, 1});
  run.threshold_split = split;
  CHECK_THROWS_WITH(check_training_data(run), Contains("empty.png"));
}
