#include "src/train/identity.h"

#include "src/core/error.h"
#include "src/run_folder/run_folder.h"
#include "src/train/provenance.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/train/image_folders.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::logged;

// A run on a small folder that was recorded, with a checkpoint.
struct RecordedRun {
  test::SmallFolder images{};
  test::TemporaryFolder folder{};
  RunFolder run = RunFolder::create(folder / "run", false);

  explicit RecordedRun(const std::vector<std::string>& settings = {}) {
    const Experiment experiment = images.run(settings);
    record_run(experiment, run, {"settrain"});
    Checkpoint checkpoint;
    add_identity(experiment, checkpoint);
    save_checkpoint(run.last_checkpoint(), checkpoint);
  }

  Checkpoint checkpoint() const { return load_checkpoint(run.last_checkpoint()); }
  // As an early version wrote it, which knew the digest of all data alone.
  Checkpoint early_checkpoint() const {
    Checkpoint early = checkpoint();
    for (const char* split : {"train", "val", "test"}) early.metadata.erase(std::string("data.") + split);
    return early;
  }
};

TEST_CASE("the same data are the same, for a checkpoint of an early version too") {
  const RecordedRun recorded;
  Experiment run = recorded.images.run();
  const std::string log = logged([&] {
    check_same_identity(run, recorded.checkpoint(), {});
    check_same_identity(run, recorded.early_checkpoint(), {});
    check_same_data(run, recorded.checkpoint());
  });
  CHECK_THAT(log, !Contains("[data]"));
}

TEST_CASE("changed images of a split that is not trained on are warned of with the first file, once") {
  const RecordedRun recorded;
  const Checkpoint checkpoint = recorded.checkpoint();
  const auto told = [&](Experiment& run) {
    return logged([&] {
      check_same_identity(run, checkpoint, {});
      check_same_data(run, checkpoint);
    });
  };
  SECTION("another size") {
    recorded.images.write("test/elm/1.bmp", "short");
    Experiment run = recorded.images.run();
    const std::string log = told(run);
    CHECK_THAT(log, Contains("test images") && Contains("'test/elm/1.bmp' has 5 bytes, and had 246") &&
                        Contains("of 9 images 1 has changed") && !Contains("val images"));
    CHECK(log.find("test/elm/1.bmp") == log.rfind("test/elm/1.bmp"));
  }
  SECTION("removed, and another one new") {
    std::filesystem::remove(recorded.images.folder / "val/ash/0.bmp");
    recorded.images.write("test/oak/more.bmp", test::bmp_bytes(8, 99));
    Experiment run = recorded.images.run();
    CHECK_THAT(told(run), Contains("'val/ash/0.bmp' is missing") && Contains("'test/oak/more.bmp' is new"));
    CHECK(run.changed_splits == std::map<std::string, bool>{{"test", false}, {"val", false}});
  }
  SECTION("in a run without a list of its files") {
    std::filesystem::remove(recorded.run.data_files());
    recorded.images.write("test/elm/1.bmp", "short");
    Experiment run = recorded.images.run();
    CHECK_THAT(told(run), Contains("test images") && !Contains("test/elm/1.bmp"));
  }
}

TEST_CASE("a run with other training images does not go on, and can be evaluated") {
  const RecordedRun recorded;
  recorded.images.write("train/oak/2.bmp", "short");
  Experiment run = recorded.images.run();
  for (const bool allow_inexact : {false, true}) {
    CHECK_THROWS_WITH(check_same_identity(run, recorded.checkpoint(), {{}, allow_inexact}),
                      Contains("data.digest") && Contains("'train/oak/2.bmp' has 5 bytes, and had 246"));
  }
  CHECK_THAT(logged([&] { check_same_data(run, recorded.checkpoint()); }),
             Contains("train images") && Contains("train/oak/2.bmp"));
}

TEST_CASE("a checkpoint of an early version does not say which images differ") {
  const RecordedRun recorded;
  recorded.images.write("test/elm/1.bmp", "short");
  Experiment run = recorded.images.run();
  const Checkpoint early = recorded.early_checkpoint();
  CHECK_THROWS_WITH(check_same_identity(run, early, {}), Contains("data.digest") && Contains("--allow-inexact"));
  CHECK_THAT(logged([&] { check_same_identity(run, early, {{}, true}); }), Contains("data.digest"));
  Experiment again = recorded.images.run();
  CHECK_THAT(logged([&] { check_same_data(again, early); }), Contains("data.digest"));
}

TEST_CASE("classes of other names, and an edited data set, are another data set") {
  const RecordedRun recorded;
  for (const char* split : {"train", "val", "test"}) {
    std::filesystem::rename(recorded.images.folder / split / "ash", recorded.images.folder / split / "yew");
  }
  Experiment run = recorded.images.run();
  CHECK_THROWS_WITH(check_same_data(run, recorded.checkpoint()), Contains("class 0: 'ash' there, 'elm' now"));

  const RecordedRun other;
  Experiment noisy = other.images.run({"data.label_noise.kind=uniform", "data.label_noise.rate=0.5"});
  CHECK_THROWS_WITH(check_same_data(noisy, other.checkpoint()),
                    Contains("data.labels") && Contains("data.label_noise.kind: none there, uniform now"));
}

TEST_CASE("other superclasses are another training, and are warned of in an evaluation; so are other names") {
  const test::TemporaryFolder tables;
  const std::string superclasses =
      "data.superclasses=" + tables.write("super.csv", std::string("ash,A\nelm,B\noak,A\n")).string();
  const std::string names =
      "data.class_names=" + tables.write("names.csv", std::string("ash,Esche\nelm,Ulme\noak,Eiche\n")).string();
  const RecordedRun recorded({superclasses, names});
  {
    Experiment run = recorded.images.run({superclasses, names});
    CHECK_THAT(logged([&] { check_same_identity(run, recorded.checkpoint(), {}); }), !Contains("classes"));
  }
  tables.write("super.csv", std::string("ash,A\nelm,A\noak,A\n"));
  Experiment run = recorded.images.run({superclasses, names});
  CHECK_THROWS_WITH(check_same_identity(run, recorded.checkpoint(), {}),
                    Contains("superclass of 'Ulme': 'B' there, 'A' now"));
  CHECK_THAT(logged([&] { check_same_data(run, recorded.checkpoint()); }), Contains("superclass of 'Ulme'"));
  CHECK_THAT(logged([&] { check_same_data(run, recorded.checkpoint()); }), !Contains("Ulme"));  // once
  tables.write("super.csv", std::string("ash,A\nelm,B\noak,A\n"));
  tables.write("names.csv", std::string("ash,Ulme\nelm,Esche\noak,Eiche\n"));
  Experiment renamed = recorded.images.run({superclasses, names});
  CHECK_THAT(logged([&] { check_same_identity(renamed, recorded.checkpoint(), {}); }),
             Contains("class 0: 'Esche' there, 'Ulme' now"));
}

TEST_CASE("images that set thresholds may change, and are warned of where training goes on") {
  const test::SmallFolder unlabelled;
  const std::string from = "eval.threshold_from=" + (unlabelled.folder / "val").string();
  const RecordedRun recorded({from});
  std::filesystem::remove(unlabelled.folder / "val/ash/0.bmp");
  Experiment run = recorded.images.run({from});
  CHECK_THAT(logged([&] { check_same_identity(run, recorded.checkpoint(), {}); }),
             Contains("threshold images") && Contains("'ash/0.bmp' is missing"));
}

TEST_CASE("a checkpoint says which input it was trained on, and which defaults were fitted to its classes") {
  const RecordedRun recorded;
  const Checkpoint checkpoint = recorded.checkpoint();
  CHECK(fitted_keys_of(checkpoint) == fitted_keys(recorded.images.run().config));
  CHECK_FALSE(fitted_keys_of(checkpoint)->empty());
  CHECK_THAT(checkpoint.metadata.at("input"), Contains("8x8"));
  const RecordedRun other({"data.normalisation=imagenet"});
  CHECK(other.checkpoint().metadata.at("input") != checkpoint.metadata.at("input"));

  Checkpoint early = checkpoint;
  early.metadata.erase("fitted");
  CHECK_FALSE(fitted_keys_of(early));
  early.metadata["fitted"] = "[1]";
  CHECK_THROWS_WITH(fitted_keys_of(early), Contains("fitted"));
}

}  // namespace
}  // namespace settrain
