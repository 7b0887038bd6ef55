#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "datasets/synthetic_model.h"
#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

Dataset make(const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"num_classes=10", "group_size=4",    "train_size=20000",
                                    "val_size=3000",  "test_size=40000", "image_size=8",
                                    "ambiguity=0.6",  "imbalance=20",    "seed=5"};
  settings.insert(settings.end(), more.begin(), more.end());
  return test::load_dataset("synthetic", settings);
}

const SyntheticImages& images_of(const Split& split) {
  return dynamic_cast<const SyntheticImages&>(*split.images);
}

}  // namespace

TEST_CASE("the joint distribution is one") {
  const SyntheticJoint joint(10, 4, 0.8, 20);
  CHECK(std::accumulate(joint.prior().begin(), joint.prior().end(), 0.0) == Approx(1).epsilon(1e-12));
  CHECK(joint.prior().front() / joint.prior().back() == Approx(20).epsilon(1e-12));
  for (int64_t y = 0; y < 10; ++y) {
    double sum = 0;
    for (int64_t cell = 0; cell < 10; ++cell) {
      sum += joint.cell_given_label(cell, y);
      CHECK((joint.cell_given_label(cell, y) > 0) == (cell / 4 == y / 4));
    }
    CHECK(sum == Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("superclasses differ in ambiguity, never beyond 1") {
  const SyntheticJoint joint(10, 4, 0.8, 1);  // 0.4, 0.8, and 1.2 cut to 1
  CHECK(joint.cell_given_label(0, 0) == Approx(0.6 + 0.4 / 4));
  CHECK(joint.cell_given_label(4, 4) == Approx(0.2 + 0.8 / 4));
  CHECK(joint.cell_given_label(8, 8) == Approx(0.5));
  CHECK(joint.label_given_cell(0)[0] == Approx(0.7));
  CHECK(joint.label_given_cell(0)[1] == Approx(0.1));
  CHECK(joint.label_given_cell(0)[4] == 0);
}

TEST_CASE("class counts follow the prior and reach every class") {
  const SyntheticJoint joint(10, 5, 0.5, 1000);
  for (const int64_t total : {10, 11, 100, 12345}) {
    const std::vector<int64_t> counts = joint.counts(total);
    CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == total);
    CHECK(*std::min_element(counts.begin(), counts.end()) >= 1);
    CHECK(std::is_sorted(counts.rbegin(), counts.rend()));
  }
  const std::vector<int64_t> few = joint.counts(3);
  CHECK(std::accumulate(few.begin(), few.end(), int64_t{0}) == 3);
  CHECK(SyntheticJoint(10, 5, 0.5, 1).counts(40) == std::vector<int64_t>(10, 4));
}

TEST_CASE("splits have their sizes, and ids of their own") {
  const Dataset dataset = make();
  CHECK(dataset.train.size() == 20000);
  CHECK(dataset.val.size() == 3000);
  CHECK(dataset.test.size() == 40000);
  CHECK(dataset.superclass_of == std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2});
  std::set<int64_t> ids;
  for (const Split* split : {&dataset.train, &dataset.val, &dataset.test})
    ids.insert(split->ids.begin(), split->ids.end());
  CHECK(ids.size() == 63000);
  CHECK(count_classes(dataset.train, 10) == SyntheticJoint(10, 4, 0.6, 20).counts(20000));
}

TEST_CASE("every image reveals its cell") {
  const Dataset dataset = make();
  const SyntheticImages& images = images_of(dataset.test);
  Image image;
  for (int64_t id = 0; id < 2000; ++id) {
    images.read(id, image);
    REQUIRE(images.recover_cell(image) == images.cell_of(id));
  }
  image.pixels.assign(image.pixels.size(), 0);
  CHECK(images.recover_cell(image) == -1);
}

TEST_CASE("labels given the cell are as frequent as the truth says") {
  const Dataset dataset = make();
  const SyntheticImages& images = images_of(dataset.test);
  const Split* splits[] = {&dataset.train, &dataset.val, &dataset.test};
  for (size_t s = 0; s < 3; ++s) {
    const std::vector<float>& truth = dataset.truth->probabilities[s];
    REQUIRE(truth.size() == splits[s]->ids.size() * 10);
    std::map<int64_t, std::vector<double>> counts, truths;
    for (size_t i = 0; i < splits[s]->ids.size(); ++i) {
      const int64_t cell = images.cell_of(splits[s]->ids[i]);
      auto& count = counts[cell];
      count.resize(10);
      ++count[static_cast<size_t>(splits[s]->labels[i])];
      truths[cell].assign(truth.begin() + static_cast<std::ptrdiff_t>(i * 10),
                          truth.begin() + static_cast<std::ptrdiff_t>(i * 10 + 10));
    }
    CHECK(counts.size() == 10);
    for (const auto& [cell, count] : counts) {
      const double n = std::accumulate(count.begin(), count.end(), 0.0);
      double total = 0;
      for (size_t y = 0; y < 10; ++y) {
        const double p = truths[cell][y];
        total += p;
        CAPTURE(s, cell, y, n, p);
        CHECK(std::abs(count[y] - n * p) <= 5 * std::sqrt(n * p * (1 - p)));
      }
      CHECK(total == Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("test labels follow the prior") {
  const Dataset dataset = make();
  const std::vector<double> prior = SyntheticJoint(10, 4, 0.6, 20).prior();
  const std::vector<int64_t> counts = count_classes(dataset.test, 10);
  for (size_t y = 0; y < 10; ++y) {
    CHECK(std::abs(static_cast<double>(counts[y]) - 40000 * prior[y]) <
          5 * std::sqrt(40000 * prior[y] * (1 - prior[y])));
  }
}

TEST_CASE("pixel noise keeps to its bound and reaches it") {
  const SyntheticImages images({8, 1, 10, 3}, 1, std::vector<int64_t>(200, 0));
  std::vector<int> lowest(64, 255), highest(64, 0);
  Image image;
  for (int64_t id = 0; id < 200; ++id) {
    images.read(id, image);
    for (size_t i = 0; i < 64; ++i) {
      lowest[i] = std::min<int>(lowest[i], image.pixels[i]);
      highest[i] = std::max<int>(highest[i], image.pixels[i]);
    }
  }
  int widest = 0;
  for (size_t i = 0; i < 64; ++i) widest = std::max(widest, highest[i] - lowest[i]);
  CHECK(widest == 20);
}

TEST_CASE("everything follows the seed") {
  const Dataset a = make(), b = make(), c = make({"seed=6"});
  CHECK(a.train.labels == b.train.labels);
  CHECK(a.test.labels != c.test.labels);
  CHECK(a.digest == b.digest);
  CHECK(a.digest != c.digest);
  Image image_a, image_b, image_c;
  a.test.images->read(77, image_a);
  b.test.images->read(77, image_b);
  c.test.images->read(77, image_c);
  CHECK(image_a.pixels == image_b.pixels);
  CHECK(image_a.pixels != image_c.pixels);
}

TEST_CASE("patterns that noise could confuse are refused") {
  CHECK_THROWS_WITH(SyntheticImages({4, 1, 60, 0}, 200, {}), Catch::Contains("data.pixel_noise"));
  CHECK_THROWS_AS(SyntheticImages({4, 1, 60, 0}, 200, {}), DataError);
}

TEST_CASE("label sets hold the label, then others of its superclass as often as P(y | x) has them") {
  const Dataset dataset = make({"labels_per_image=3"});
  const Split& train = dataset.train;
  CHECK(train.labels == make().train.labels);
  CHECK(make().train.label_sets.empty());
  CHECK(dataset.digest != make().digest);
  double others = 0, expected = 0;
  for (int64_t i = 0; i < train.size(); ++i) {
    const auto set = train.label_sets.of(i);
    const int64_t label = train.labels[static_cast<size_t>(i)];
    REQUIRE(set[0] == label);
    REQUIRE(std::set<int64_t>(set.begin(), set.end()).size() == set.size());
    // The chance that a class is not among two draws is (1 - p)^2.
    others += static_cast<double>(set.size() - 1);
    for (int64_t c = 0; c < 10; ++c) {
      const double p = dataset.truth->probabilities[0][static_cast<size_t>(i * 10 + c)];
      if (c != label) expected += 1 - (1 - p) * (1 - p);
      REQUIRE((p > 0 || std::find(set.begin(), set.end(), c) == set.end()));
    }
  }
  CHECK(others > 0.2 * static_cast<double>(train.size()));
  CHECK(others == Approx(expected).epsilon(0.03));
}
