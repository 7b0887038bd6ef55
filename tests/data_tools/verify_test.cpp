#include "src/data_tools/verify.h"

#include <csignal>
#include <numeric>

#include "src/core/interrupt.h"
#include "tests/data_tools/odd_folder.h"
#include "tests/support/catch2.h"
#include "tests/support/child_process.h"

using namespace settrain;
using Catch::Contains;

namespace {

const std::vector<std::string> kAll{"train", "val", "test"};

ProgressOutput no_progress() {
  return {.terminal = nullptr, .columns = nullptr, .line = [](std::string_view) {}, .seconds = [] { return 0.0; }};
}

}  // namespace

TEST_CASE("Bad images are found in their order, whatever the number of workers") {
  const test::OddFolder folder;
  const Dataset dataset = folder.load();
  for (const int64_t workers : {1, 3}) {
    const VerifyReport report = verify_images(dataset, kAll, workers, no_progress());
    CHECK(report.complete());
    REQUIRE(report.bad.size() == 4);
    CHECK(report.bad[0].file == folder.path("train/elm/2.jpg"));
    CHECK(report.bad[1].file == folder.path("train/oak/2.jpg"));
    CHECK(report.bad[2].file == folder.path("train/oak/4.jpg"));
    CHECK(report.bad[3].file == folder.path("test/oak/1.jpg"));
    CHECK(report.bad[0].split == "train");
    CHECK(report.bad[0].classes == "elm");
    CHECK_THAT(report.bad[1].reason, Contains("empty") && Contains("train/oak/2.jpg"));
    CHECK(report.bad[3].split == "test");

    const std::string text = verify_text(report);
    CHECK_THAT(text, Contains("bad: train, class elm: '" + folder.path("train/elm/2.jpg") + "'"));
    CHECK_THAT(text, Contains("train 8 images read, 3 bad\nval   2 images read, 0 bad\ntest  2 images read, 1 bad\n"));
    CHECK_FALSE(text.find("stopped") != std::string::npos);
  }
}

TEST_CASE("Only the named splits are read") {
  const test::OddFolder folder;
  const VerifyReport report = verify_images(folder.load(), {"val"}, 2, no_progress());
  CHECK(report.bad.empty());
  REQUIRE(report.splits.size() == 1);
  CHECK(report.splits[0].read == 2);
}

TEST_CASE("The list of bad files has each once") {
  VerifyReport report;
  for (const char* file : {"a.jpg", "b c.jpg", "a.jpg"}) report.bad.push_back({"train", "oak", file, "why"});
  CHECK(verify_list(report) == "a.jpg\nb c.jpg\n");
  CHECK(verify_list({}).empty());
}

TEST_CASE("All labels of an image are named, and images that are no files are called by their numbers") {
  struct Broken : ImageSource {
    int64_t size() const override { return 2; }
    void read(int64_t id, Image&) const override {
      if (id == 0) throw std::bad_alloc();
    }
  };
  Dataset dataset;
  dataset.class_names = {"ash", "elm", "oak"};
  dataset.train = {"train", std::make_shared<Broken>(), {1, 0}, {0, 2}};
  dataset.train.label_sets.add(std::vector<int64_t>{0});
  dataset.train.label_sets.add(std::vector<int64_t>{2, 1});
  const VerifyReport report = verify_images(dataset, {"train"}, 1, no_progress());
  REQUIRE(report.bad.size() == 1);
  CHECK(report.bad[0].classes == "oak, elm");
  CHECK(report.bad[0].file == "image 0");
  CHECK_THAT(report.bad[0].reason, Contains("memory"));
}

TEST_CASE("A signal ends the reading, and the report says how far it came") {
  struct Endless : ImageSource {
    int64_t size() const override { return 1000000; }
    void read(int64_t id, Image&) const override {
      if (id == 20) std::raise(SIGINT);
    }
  };
  Dataset dataset;
  dataset.class_names = {"oak"};
  dataset.train = {"train", std::make_shared<Endless>(), std::vector<int64_t>(1000000), std::vector<int64_t>(1000000)};
  std::iota(dataset.train.ids.begin(), dataset.train.ids.end(), 0);
  dataset.val = {"val", dataset.train.images, {0}, {0}};
  const int code = test::run_in_child([&] {
    catch_interrupts();
    const VerifyReport report = verify_images(dataset, {"train", "val"}, 2, no_progress());
    const std::string text = verify_text(report);
    const bool told = text.find(" of 1,000,000 images read") != text.npos && text.find("stopped") != text.npos;
    return !report.complete() && report.splits[0].read < 1000000 && report.splits[1].read == 0 && told ? 0 : 1;
  });
  CHECK(code == 0);
}
