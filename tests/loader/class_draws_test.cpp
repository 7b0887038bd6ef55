#include "src/loader/sampler.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

const std::vector<int64_t> kCounts{16, 0, 4, 1};

void check_probabilities(const Sampling& sampling, int64_t epoch, const std::vector<double>& expected) {
  const std::vector<double> got = class_probabilities(sampling, kCounts, epoch);
  REQUIRE(got.size() == expected.size());
  for (size_t j = 0; j < got.size(); ++j) CHECK(got[j] == Approx(expected[j]).margin(1e-15));
}

Dataset three_classes() {
  Dataset dataset;
  dataset.class_names = {"oak", "elm, field", "ash"};
  dataset.train.ids.resize(20);
  dataset.train.labels.assign(16, 0);
  dataset.train.labels.resize(20, 2);
  return dataset;
}

}  // namespace

TEST_CASE("probabilities of the classes by images, their roots, or alike") {
  for (const int64_t epoch : {0, 7}) {
    check_probabilities({Sampling::kUniform}, epoch, {16.0 / 21, 0, 4.0 / 21, 1.0 / 21});
    check_probabilities({Sampling::kSquareRoot}, epoch, {4.0 / 7, 0, 2.0 / 7, 1.0 / 7});
    check_probabilities({Sampling::kClassBalanced}, epoch, {1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  }
}

TEST_CASE("progressive sampling goes from images to classes") {
  const Sampling sampling{Sampling::kProgressive, 4};
  CHECK(class_probabilities(sampling, kCounts, 0) == class_probabilities({Sampling::kUniform}, kCounts, 0));
  check_probabilities(sampling, 1, {0.75 * 16 / 21 + 0.25 / 3, 0, 0.75 * 4 / 21 + 0.25 / 3, 0.75 / 21 + 0.25 / 3});
  check_probabilities(sampling, 3, {0.25 * 16 / 21 + 0.75 / 3, 0, 0.25 * 4 / 21 + 0.75 / 3, 0.25 / 21 + 0.75 / 3});
  // A measurement of speed may take more epochs than the run.
  for (const int64_t epoch : {4, 9}) check_probabilities(sampling, epoch, {1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  check_probabilities({Sampling::kProgressive, 0}, 0, {16.0 / 21, 0, 4.0 / 21, 1.0 / 21});
}

TEST_CASE("class counts are images and expected draws") {
  const Dataset dataset = three_classes();
  CHECK(class_counts_csv(dataset, {}) ==
        "class,name,images,draws_first_epoch,draws_last_epoch\n"
        "0,oak,16,16,16\n1,\"elm, field\",0,0,0\n2,ash,4,4,4\n");
  CHECK(class_counts_csv(dataset, {Sampling::kSquareRoot, 9}) ==
        "class,name,images,draws_first_epoch,draws_last_epoch\n"
        "0,oak,16,13.3333,13.3333\n1,\"elm, field\",0,0,0\n2,ash,4,6.66667,6.66667\n");
  CHECK(class_counts_csv(dataset, {Sampling::kProgressive, 4}) ==
        "class,name,images,draws_first_epoch,draws_last_epoch\n"
        "0,oak,16,16,11.5\n1,\"elm, field\",0,0,0\n2,ash,4,4,8.5\n");
}

TEST_CASE("of several labels the first counts") {
  Dataset dataset = three_classes();
  for (const int64_t label : dataset.train.labels) dataset.train.label_sets.add(std::vector<int64_t>{label, 1});
  CHECK(class_counts_csv(dataset, {}) == class_counts_csv(three_classes(), {}));
}

TEST_CASE("the log says the imbalance of images and draws") {
  CHECK(describe_imbalance(three_classes(), {Sampling::kSquareRoot, 4}) ==
        "sampler square_root: the most frequent class has 4 times the images of the rarest, and 2 times its draws");
  CHECK(
      describe_imbalance(three_classes(), {Sampling::kProgressive, 4}) ==
      "sampler progressive: the most frequent class has 4 times the images of the rarest, and 4 times its draws in the "
      "first epoch, 1.353 times in the last");
}
