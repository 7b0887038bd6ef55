#include "src/train/experiment.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>

#include "datasets/image_files.h"
#include "src/core/error.h"
#include "src/train/evaluation.h"
#include "src/train/training_checks.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/image_folders.h"

namespace settrain {
namespace {

using Catch::Contains;

config::Config few_classes(int64_t classes, std::vector<std::string> settings = {}) {
  const std::string number = std::to_string(classes);
  std::vector<std::string> all{
      "data.name=synthetic", "data.num_classes=" + number, "data.group_size=1", "data.train_size=12", "data.val_size=6",
      "data.test_size=6",    "data.image_size=8",          "data.workers=1",    "model.name=resnet8", "model.width=1",
      "run.threads=1"};
  all.insert(all.end(), settings.begin(), settings.end());
  return config::load(experiment_schema(test::builtin_registries()), {}, all);
}

Experiment experiment_of(const config::Config& config) {
  return make_experiment(test::builtin_registries(), config, at::kCPU);
}

TEST_CASE("default K above the number of classes are left out, and the run's config says so") {
  for (const auto& [classes, top_k, average_k] :
       {std::tuple(int64_t{2}, config::Integers{1}, config::Reals{2}), {4, {1}, {2}}, {5, {1, 5}, {2, 5}}}) {
    CAPTURE(classes);
    const Experiment run = experiment_of(few_classes(classes));
    CHECK(run.config.get<config::Integers>("eval.top_k") == top_k);
    CHECK(run.config.get<config::Reals>("eval.average_k") == average_k);
    CHECK(fitted_keys(run.config).size() == (classes < 5 ? 2 : 0));
    // The recorded config is one that was written, for the same data.
    const Experiment again = experiment_of(
        config::load_resolved(experiment_schema(test::builtin_registries()), run.config.to_yaml(), "config.yaml", {}));
    CHECK(again.config.to_yaml() == run.config.to_yaml());
    CHECK(fitted_keys(again.config).empty());
  }
}

TEST_CASE("the default K of every loss becomes one that the classes allow") {
  for (const LossEntry& loss : test::builtin_registries().losses.entries()) {
    CAPTURE(loss.name);
    std::vector<std::string> settings{"loss.name=" + loss.name};
    if (loss.requirements.normalised_head) settings.emplace_back("model.head=normalised");
    if (loss.requirements.two_heads) settings.emplace_back("model.head=two_head");
    const config::Config asked = few_classes(3, settings);
    const Experiment run = experiment_of(asked);
    if (!asked.has("loss.k")) continue;
    const config::Value& k = run.config.at("loss.k").value;
    const double largest = std::holds_alternative<double>(asked.at("loss.k").value) ? 3 : 2;
    CHECK((std::holds_alternative<double>(k) ? std::get<double>(k) : static_cast<double>(std::get<int64_t>(k))) <=
          largest);
    CHECK(run.config.at("loss.k").origin.is_default());
  }
  CHECK(experiment_of(few_classes(6, {"loss.name=topk_hinge"})).config.get<int64_t>("loss.k") == 5);
}

TEST_CASE("K that the user wrote are mistakes, and all are reported at once") {
  const auto error_of = [](const std::vector<std::string>& settings) -> std::string {
    try {
      experiment_of(few_classes(3, settings));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(error_of({"eval.top_k=[1, 5]"}), Contains("eval.top_k") && Contains("5") && Contains("3 classes"));
  CHECK_THAT(error_of({"eval.top_k=[1, 5]", "eval.average_k=[7]", "train.top_k=[4]", "loss.name=topk_hinge", "loss.k=3",
                       "eval.rules=[\"top:9\"]"}),
             Contains("5 problems") && Contains("--set eval.top_k") && Contains("--set eval.average_k") &&
                 Contains("--set train.top_k") && Contains("--set loss.k") && Contains("eval.rules"));
  // The metric was to be had with the usual default.
  CHECK_THAT(error_of({"select=[val/top5]", "eval.average_k=[4]"}),
             Contains("val/top5") && Contains("eval.top_k is [1]") && Contains("--set eval.average_k"));
}

TEST_CASE(
    "a superclass that the data have not is told with the nearest, before the images are read where names are known") {
  const auto load = [](std::vector<std::string> settings) { experiment_of(few_classes(4, std::move(settings))); };
  CHECK_THROWS_WITH(load({"eval.subset.superclasses=[superclas_3, superclass_0]"}),
                    Contains("eval.subset.superclasses") && Contains("'superclass_3'"));
  for (const char* key : {"data.only_superclasses", "eval.subset.superclasses"}) {
    const config::Config cifar =
        config::load(experiment_schema(test::builtin_registries()), {},
                     {"data.name=cifar100", "data.root=/nowhere", "run.threads=1", fmt::format("{}=[flowrs]", key)});
    CHECK_THROWS_WITH(experiment_of(cifar), Contains(key) && Contains("'flowers'"));
  }
  CHECK_THROWS_WITH(load({"data.superclass_seed=2"}), Contains("data.superclass_share"));
  CHECK_THROWS_WITH(load({"data.superclass_share=0.5", "data.only_superclasses=[superclass_1]"}),
                    Contains("data.only_superclasses"));
}

TEST_CASE("every metric of select that is not measured is named, with the nearest that is") {
  CHECK_THROWS_WITH(
      few_classes(6, {"select=[val/top1, vall/top1, val/top2, last]"}),
      Contains("'vall/top1'") && Contains("did you mean 'val/top1'") && Contains("'val/top2'") && !Contains("'last'"));
}

TEST_CASE("why a metric has no value is known from the config and the data") {
  const auto why = [](const std::string& metric, int64_t classes, const std::vector<std::string>& settings = {}) {
    return why_no_value(test::builtin_registries(), few_classes(classes, settings), metric);
  };
  CHECK(why("val/top1", 3).empty());
  CHECK(why("val/few_top1", 3).empty());
  CHECK_THAT(why("val/medium_top1", 3), Contains("val/medium_top1") && Contains("3 classes") && Contains("4 to 4"));
  CHECK(why("val/medium_top1", 3, {"data.train_size=90"}).empty());
  CHECK_FALSE(why("val/few_top1", 3, {"data.train_size=90"}).empty());
  CHECK_FALSE(why("val/macro_top5", 3).empty());
  CHECK_THAT(why("val/macro_top5", 3, {"eval.top_k=[1, 5]"}), Contains("eval.top_k"));
  CHECK(why("val/macro_top5", 6).empty());
  CHECK(why("val/size@top:2", 3, {"eval.rules=[\"top:2\"]"}).empty());
}

TEST_CASE("a metric follows from the images of its split, and of those that set thresholds or calibrate for it") {
  using Splits = std::set<std::string>;
  const config::Config config = few_classes(6, {"eval.average_k=[2]"});
  CHECK(splits_behind("val/top1", config, true) == Splits{"val"});
  CHECK(splits_behind("test/macro_top5", config, true) == Splits{"test"});
  CHECK(splits_behind("test/avg2", config, true) == Splits{"test", "val"});
  CHECK(splits_behind("test/avg2", few_classes(6, {"eval.threshold_from=same"}), true) == Splits{"test"});
  CHECK(splits_behind("test/subset_avg2", config, true) == Splits{"test"});
  CHECK(splits_behind("test/size@top:2", config, true) == Splits{"test", "calibration"});
  CHECK(splits_behind("test/size@top:2", config, false) == Splits{"test", "val"});
  CHECK(splits_behind("val/size@top:2", config, true) == Splits{"val"});
}

TEST_CASE("a network that cannot be trained on one image is asked only where a batch may be so small") {
  const auto takes_one = [](int train_images, const std::vector<std::string>& settings) {
    const test::SmallFolder folder(train_images);  // of 8 x 8 pixels: resnet18 leaves one
    return folder.run(settings).takes_one_image;
  };
  CHECK(takes_one(4, {"model.name=resnet18"}));
  CHECK(takes_one(4, {"data.on_bad_image=skip"}));  // resnet8 leaves more pixels
  CHECK_FALSE(takes_one(4, {"model.name=resnet18", "data.on_bad_image=skip"}));

  const test::SmallFolder nine(3);  // 9 images in batches of 4
  CHECK_THROWS_WITH(nine.run({"model.name=resnet18", "data.on_bad_image=skip"}, FirstWeights::kPretrained),
                    Contains("data.drop_last"));
  CHECK_NOTHROW(nine.run({"model.name=resnet18"}));  // it is evaluated
}

TEST_CASE("which batch has one image is said, and what helps") {
  const auto refusal = [](int images_a_class, const std::string& batch_size) {
    const test::SmallFolder folder(images_a_class);
    const Experiment run = folder.run({"model.name=resnet18", "data.batch_size=" + batch_size});
    try {
      check_batches_of_one(run, training_loader(run.dataset, run.loader, 0));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  // 9 images: those in batches of 4 leave one over, and so do those in batches of 8, but not those of 5 or 9.
  CHECK_THAT(refusal(3, "4"), Contains("9 images in batches of 4") && Contains("data.drop_last: true") &&
                                  Contains("data.batch_size, such as 5"));
  CHECK_THAT(refusal(3, "8"), Contains("data.batch_size, such as 9"));
  CHECK_THAT(refusal(3, "1"), Contains("data.batch_size: 1") && !Contains("drop_last"));
  CHECK(refusal(3, "5").empty());
}

// An experiment that has data and no model.
Experiment with_data(const std::vector<int64_t>& train_counts) {
  Experiment run{.config = config::load(experiment_schema(test::builtin_registries()), {}, {}), .device = at::kCPU};
  run.train.epochs = 1;
  run.train_counts = train_counts;
  for (size_t c = 0; c < train_counts.size(); ++c) run.dataset.class_names.push_back("class_" + std::to_string(c));
  run.loader.options.on_bad_image = "error";
  return run;
}

TEST_CASE("a training on images of one class is refused") {
  CHECK_NOTHROW(check_training_data(with_data({0, 1, 2})));
  Experiment run = with_data({0, 0, 7});
  CHECK_THROWS_AS(check_training_data(run), DataError);
  CHECK_THROWS_WITH(check_training_data(run), Contains("one class, class_2"));
  run.train.epochs = 0;  // nothing is trained
  CHECK_NOTHROW(check_training_data(run));
}

TEST_CASE("empty files of each split and of the images for thresholds are refused, though bad images are left out") {
  const test::TemporaryFolder folder;
  folder.write("empty.png", std::string());
  FileTable files(folder.path());
  files.add("empty.png");
  CHECK_FALSE(files.measure());
  const Split split{
      .name = "some", .images = std::make_shared<ImageFiles>(files, ImageFileOptions{}), .ids = {0}, .labels = {0}};
  for (Split Dataset::*member : {&Dataset::train, &Dataset::val, &Dataset::calibration, &Dataset::test}) {
    Experiment run = with_data({1, 1});
    run.eval.splits = {"val", "test"};
    run.dataset.*member = split;
    CHECK_THROWS_WITH(check_training_data(run), Contains("some: 1: ") && Contains("empty.png"));
    run.loader.options.on_bad_image = "skip";
    CHECK_THROWS_WITH(check_training_data(run), Contains("some: 1: ") && !Contains("data.on_bad_image"));
  }
  Experiment run = with_data({1, 1});
  run.dataset.test = split;
  run.eval.splits = {"val"};
  CHECK_NOTHROW(check_training_data(run));  // nothing reads its images
  run.threshold_split = split;
  CHECK_THROWS_WITH(check_training_data(run), Contains("empty.png"));
}

}  // namespace
}  // namespace settrain
