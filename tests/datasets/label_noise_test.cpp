#include "datasets/label_noise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

namespace {

// 12 classes in turns; superclass c % 3, so that blocks of consecutive indices are something else.
Dataset labelled(int64_t train_size) {
  Dataset dataset;
  dataset.name = "labelled";
  dataset.class_names.assign(12, "class");
  dataset.superclass_names.assign(3, "superclass");
  for (int64_t c = 0; c < 12; ++c) dataset.superclass_of.push_back(c % 3);
  for (int64_t id = 0; id < train_size; ++id) {
    dataset.train.ids.push_back(id);
    dataset.train.labels.push_back(id % 12);
  }
  dataset.val = dataset.test = dataset.train;
  return dataset;
}

constexpr int64_t kSize = 60000;

}  // namespace

TEST_CASE("no noise changes nothing and still has a digest") {
  Dataset dataset = labelled(3);
  const LabelNoiseReport report = apply_label_noise({.kind = "none"}, dataset);
  CHECK(dataset.train.labels == std::vector<int64_t>{0, 1, 2});
  CHECK(report.changed == 0);
  CHECK_FALSE(report.within_superclass.has_value());
  std::string bytes(24, '\0');
  bytes[8] = 1;
  bytes[16] = 2;
  CHECK(report.digest == sha256(bytes));
}

TEST_CASE("each kind draws from its own group of classes, at the expected rate") {
  struct Case {
    std::string kind;
    double change;           // 1 - the mean of 1 / group size
    double same_superclass;  // of the changed ones
  };
  // index_block of 5: blocks 0-4, 5-9 and 10-11. Of the 4 others in a block of 5, the fraction in the label's
  // superclass is 1/4 for labels 0, 1, 3, 4 of the block and 0 for the middle one; a block of 2 has none.
  const double changed_of_blocks = (10 * 0.8 + 2 * 0.5) / 12;
  const Case kind = GENERATE_COPY(Case{"superclass", 0.75, 1.0}, Case{"uniform", 11.0 / 12, 3.0 / 11},
                                  Case{"index_block", changed_of_blocks, 8 * 0.8 * 0.25 / 12 / changed_of_blocks});
  CAPTURE(kind.kind);
  constexpr double kRate = 0.3;
  Dataset dataset = labelled(kSize);
  const LabelNoiseReport report = apply_label_noise({kind.kind, kRate, 5, 17}, dataset);

  CHECK(report.nominal_rate == kRate);
  CHECK(report.effective_rate == Approx(kRate * kind.change).epsilon(1e-12));
  const double p = kRate * kind.change;
  CHECK(std::abs(report.changed_rate - p) < 5 * std::sqrt(p * (1 - p) / kSize));
  CHECK(report.changed_rate == static_cast<double>(report.changed) / kSize);
  const double q = kind.same_superclass;
  CHECK(std::abs(report.within_superclass.value() - q) <=
        5 * std::sqrt(q * (1 - q) / static_cast<double>(report.changed)));

  for (size_t i = 0; i < dataset.train.labels.size(); ++i) {
    const int64_t before = static_cast<int64_t>(i) % 12, after = dataset.train.labels[i];
    REQUIRE((after >= 0 && after < 12));
    if (kind.kind == "superclass") REQUIRE(after % 3 == before % 3);
    if (kind.kind == "index_block") REQUIRE(after / 5 == before / 5);
  }
}

TEST_CASE("another label is drawn from the others of its group, evenly, at the rate itself") {
  using NewLabel = LabelNoiseOptions::NewLabel;
  for (const char* kind : {"superclass", "uniform", "index_block"}) {
    CAPTURE(kind);
    Dataset dataset = labelled(kSize);
    const LabelNoiseReport report = apply_label_noise(
        {.kind = kind, .rate = 0.5, .block_size = 5, .seed = 4, .new_label = NewLabel::kOther}, dataset);
    CHECK(report.effective_rate == Approx(0.5).epsilon(1e-12));
    CHECK(std::abs(report.changed_rate - 0.5) < 5 * std::sqrt(0.25 / kSize));
  }
  Dataset dataset = labelled(kSize);
  apply_label_noise({.kind = "superclass", .rate = 1, .seed = 3, .new_label = NewLabel::kOther}, dataset);
  constexpr double kDraws = kSize / 12.0;
  for (const int64_t label : {1, 4, 10}) {  // the first, a middle and the last class of a group
    std::vector<int64_t> counts(12);
    for (int64_t id = label; id < kSize; id += 12)
      ++counts[static_cast<size_t>(dataset.train.labels[static_cast<size_t>(id)])];
    CHECK(counts[static_cast<size_t>(label)] == 0);
    for (const int64_t other : {1, 4, 7, 10}) {
      if (other == label) continue;
      CHECK(std::abs(static_cast<double>(counts[static_cast<size_t>(other)]) - kDraws / 3) <
            5 * std::sqrt(kDraws * 2 / 9));
    }
  }
}

TEST_CASE("a class that is alone in its group keeps its labels") {
  using NewLabel = LabelNoiseOptions::NewLabel;
  Dataset dataset = labelled(1200);
  dataset.superclass_of = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const LabelNoiseReport report =
      apply_label_noise({.kind = "superclass", .rate = 1, .seed = 3, .new_label = NewLabel::kOther}, dataset);
  CHECK(report.changed == 1100);
  CHECK(report.effective_rate == Approx(11.0 / 12));
  for (int64_t id = 11; id < 1200; id += 12) CHECK(dataset.train.labels[static_cast<size_t>(id)] == 11);
}

TEST_CASE("a new label is uniform in its group") {
  Dataset dataset = labelled(kSize);
  apply_label_noise({"superclass", 1.0, 0, 3}, dataset);
  std::vector<int64_t> counts(12);
  for (int64_t id = 4; id < kSize; id += 12)
    ++counts[static_cast<size_t>(dataset.train.labels[static_cast<size_t>(id)])];
  constexpr double kDraws = kSize / 12.0;
  for (const size_t c : {1, 4, 7, 10})
    CHECK(std::abs(static_cast<double>(counts[c]) - kDraws / 4) < 5 * std::sqrt(kDraws * 3 / 16));
}

TEST_CASE("validation and test labels stay clean") {
  Dataset dataset = labelled(1000);
  const std::vector<int64_t> clean = dataset.val.labels;
  apply_label_noise({"uniform", 1.0, 0, 3}, dataset);
  CHECK(dataset.train.labels != clean);
  CHECK(dataset.val.labels == clean);
  CHECK(dataset.test.labels == clean);
}

TEST_CASE("a sample's noise does not depend on the order or the other samples") {
  Dataset whole = labelled(1200);
  apply_label_noise({"superclass", 0.5, 0, 8}, whole);
  Dataset part = labelled(1200);
  std::reverse(part.train.ids.begin(), part.train.ids.end());
  std::reverse(part.train.labels.begin(), part.train.labels.end());
  part.train.ids.resize(700);
  part.train.labels.resize(700);
  apply_label_noise({"superclass", 0.5, 0, 8}, part);
  for (size_t i = 0; i < 700; ++i)
    CHECK(part.train.labels[i] == whole.train.labels[static_cast<size_t>(part.train.ids[i])]);
}

TEST_CASE("the noise and its digest follow the seed") {
  const auto digest = [](int64_t seed) {
    Dataset dataset = labelled(1200);
    return apply_label_noise({"uniform", 0.5, 0, seed}, dataset).digest;
  };
  CHECK(digest(1) == digest(1));
  CHECK(digest(1) != digest(2));
}

TEST_CASE("rate 0 changes nothing") {
  Dataset dataset = labelled(1200);
  const std::vector<int64_t> clean = dataset.train.labels;
  const LabelNoiseReport report = apply_label_noise({"uniform", 0.0, 0, 1}, dataset);
  CHECK(dataset.train.labels == clean);
  CHECK(report.effective_rate == 0);
}

TEST_CASE("superclass noise needs superclasses") {
  Dataset dataset = labelled(12);
  dataset.superclass_of.clear();
  CHECK_THROWS_AS(apply_label_noise({"superclass", 0.5, 0, 1}, dataset), KeyError);
  CHECK_FALSE(apply_label_noise({"uniform", 1.0, 0, 1}, dataset).within_superclass.has_value());
}

TEST_CASE("label sets are not changed one label at a time") {
  Dataset dataset = labelled(3);
  for (const int64_t& label : dataset.train.labels) dataset.train.label_sets.add({&label, 1});
  CHECK_THROWS_WITH(apply_label_noise({"uniform", 0.5, 0, 1}, dataset), Catch::Contains("several labels an image"));
  CHECK_NOTHROW(apply_label_noise({"none", 0, 0, 1}, dataset));
}

namespace {

struct Matrix {
  test::TemporaryFolder folder;

  LabelNoiseOptions write(const std::string& text, int64_t seed = 1) {
    return {.kind = "confusion", .seed = seed, .matrix = folder.write("matrix.txt", text).string()};
  }
};

// 3 classes in turns.
Dataset of_three(int64_t train_size) {
  Dataset dataset = labelled(train_size);
  dataset.class_names.resize(3);
  dataset.superclass_names = {"a", "b"};
  dataset.superclass_of = {0, 0, 1};
  for (int64_t& label : dataset.train.labels) label %= 3;
  return dataset;
}

}  // namespace

TEST_CASE("confusion draws by the rows of a matrix") {
  Matrix matrix;
  const LabelNoiseOptions options = matrix.write("# oaks\n0.5, 0.5, 0\n\n 0 1 0 # sure\n.1\t0.3,0.6\r\n", 5);
  Dataset dataset = of_three(kSize);
  const std::vector<int64_t> clean = dataset.train.labels;
  const LabelNoiseReport report = apply_label_noise(options, dataset);
  CHECK(report.kind == "confusion");
  CHECK(report.effective_rate == Approx(0.3).epsilon(1e-12));
  CHECK(report.nominal_rate == report.effective_rate);

  std::vector<double> counts(9);
  for (size_t i = 0; i < clean.size(); ++i) ++counts[static_cast<size_t>(3 * clean[i] + dataset.train.labels[i])];
  const std::vector<double> expected = {0.5, 0.5, 0, 0, 1, 0, 0.1, 0.3, 0.6};
  constexpr double kEach = kSize / 3.0;
  for (size_t i = 0; i < 9; ++i) {
    CAPTURE(i);
    CHECK(std::abs(counts[i] - kEach * expected[i]) <= 5 * std::sqrt(kEach * expected[i] * (1 - expected[i])));
  }
  CHECK(static_cast<double>(report.changed) == counts[1] + counts[6] + counts[7]);
  CHECK(report.changed_rate == static_cast<double>(report.changed) / kSize);
  CHECK(report.within_superclass.value() == counts[1] / static_cast<double>(report.changed));
}

TEST_CASE("a sample's confusion depends on the seed and its id alone") {
  Matrix matrix;
  const LabelNoiseOptions options = matrix.write("0.5 0.5 0\n0.2 0.3 0.5\n0.1 0.3 0.6\n", 8);
  Dataset whole = of_three(1200), part = of_three(1200), other = of_three(1200);
  apply_label_noise(options, whole);
  std::reverse(part.train.ids.begin(), part.train.ids.end());
  std::reverse(part.train.labels.begin(), part.train.labels.end());
  part.train.ids.resize(700);
  part.train.labels.resize(700);
  apply_label_noise(options, part);
  for (size_t i = 0; i < 700; ++i)
    CHECK(part.train.labels[i] == whole.train.labels[static_cast<size_t>(part.train.ids[i])]);
  LabelNoiseOptions other_seed = options;
  other_seed.seed = 9;
  apply_label_noise(other_seed, other);
  CHECK(other.train.labels != whole.train.labels);
}

TEST_CASE("what is wrong with a matrix is said with file and line") {
  Matrix matrix;
  const auto check = [&](const std::string& text, const std::string& place, const std::string& what) {
    CAPTURE(text);
    Dataset dataset = of_three(12);
    CHECK_THROWS_WITH(apply_label_noise(matrix.write(text), dataset),
                      Catch::Contains("matrix.txt" + place) && Catch::Contains(what));
    CHECK_THROWS_AS(apply_label_noise(matrix.write(text), dataset), DataError);
  };
  const std::string row = "1 0 0\n";
  check(row + "0 1\n", ":2: ", "expected 3 numbers, one a class, got 2");
  check("#\n\n" + row + "0 1 0 0\n", ":4: ", "expected 3 numbers, one a class, got more");
  check(row + "0 -0.5 1.5\n", ":2: ", "-0.5 is no probability");
  check(row + "0 one 0\n", ":2: ", "got 'one'");
  check(row + "0 nan 1\n", ":2: ", "got 'nan'");
  check(row + "0,,1\n", ":2: ", "got ''");
  check(row + "0 0.5 0.49999\n", ":2: ", "add up to 0.99999");
  check(row + row, "'", "has 2 lines of numbers, expected 3");
  check(row + row + row + row, ":4: ", "a line too many");
  Dataset dataset = of_three(12);
  CHECK_THROWS_WITH(apply_label_noise({.kind = "confusion", .matrix = "/no/such.txt"}, dataset),
                    Catch::Contains("/no/such.txt"));
  check("\xFF\xFE" + std::string("1\0 \0", 4), ":1: ", "UTF-16");
  CHECK_NOTHROW(apply_label_noise(matrix.write(row + "0.3333333 0.3333333 0.3333333\n" + row), dataset));
  CHECK_NOTHROW(apply_label_noise(matrix.write("\xEF\xBB\xBF" + row + row + row), dataset));
}
