#include "src/inference/score_file.h"

#include <ATen/ATen.h>

#include "src/checkpoint/tensor_file.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

ScoreFile some_scores() {
  return {{at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({2, 3}), at::tensor({2, 0}, at::kLong)},
          {.classes = 3, .names = {"oak", "elm", "\"ash\""}, .train_counts = {5, 0, 7}, .superclass_of = {0, 1, 1}},
          "abc"};
}

}  // namespace

TEST_CASE("scores and what is known of the classes come back from a file") {
  const test::TemporaryFolder folder;
  ScoreFile scores = some_scores();
  scores.facts.probability = ProbabilityKind::kSigmoid;
  write_score_file(folder / "s.safetensors", scores, {{"split", "val"}});
  const ScoreFile read = read_score_file(folder / "s.safetensors");
  CHECK(at::equal(read.scores.scores, scores.scores.scores));
  CHECK(at::equal(read.scores.labels, scores.scores.labels));
  CHECK(read.facts.classes == 3);
  CHECK(read.facts.names == scores.facts.names);
  CHECK(read.facts.train_counts == scores.facts.train_counts);
  CHECK(read.facts.superclass_of == scores.facts.superclass_of);
  CHECK(read.facts.probability == ProbabilityKind::kSigmoid);
  CHECK(read.model == "abc");
}

TEST_CASE("a class' name that is no UTF-8 is written with U+FFFD") {
  const test::TemporaryFolder folder;
  ScoreFile scores = some_scores();
  scores.facts.names[1] = "\xDCrsa";
  write_score_file(folder / "s.safetensors", scores, {});
  CHECK(read_score_file(folder / "s.safetensors").facts.names[1] == "\xEF\xBF\xBDrsa");
}

TEST_CASE("scores of other programs are read in their own types") {
  const test::TemporaryFolder folder;
  const at::Tensor scores = some_scores().scores.scores, labels = at::tensor({2, 0}, at::kInt);
  write_tensor_file(folder / "half.safetensors", {{"scores", scores.to(at::kHalf)}, {"labels", labels}});
  const ScoreFile half = read_score_file(folder / "half.safetensors");
  CHECK(half.scores.scores.scalar_type() == at::kFloat);
  CHECK(half.scores.labels.scalar_type() == at::kLong);
  CHECK(half.facts.names.empty());
  CHECK(half.facts.train_counts.empty());
  write_tensor_file(folder / "double.safetensors", {{"scores", scores.to(at::kDouble)}, {"labels", labels}});
  CHECK(read_score_file(folder / "double.safetensors").scores.scores.scalar_type() == at::kDouble);
}

TEST_CASE("labels and counts of unsigned integers are read") {
  const test::TemporaryFolder folder;
  const at::Tensor scores = some_scores().scores.scores, labels = at::tensor({2, 0}, at::kLong),
                   counts = at::tensor({5, 0, 60000}, at::kLong), superclasses = at::tensor({0, 1, 1}, at::kLong);
  for (const at::ScalarType type : {at::kUInt16, at::kUInt32, at::kUInt64}) {
    INFO(c10::toString(type));
    write_tensor_file(folder / "u.safetensors", {{"scores", scores},
                                                 {"labels", labels.to(type)},
                                                 {"train_counts", counts.to(type)},
                                                 {"superclass_of", superclasses.to(type)}});
    const ScoreFile read = read_score_file(folder / "u.safetensors");
    CHECK(read.scores.labels.scalar_type() == at::kLong);
    CHECK(at::equal(read.scores.labels, labels));
    CHECK(read.facts.train_counts == std::vector<int64_t>{5, 0, 60000});
    CHECK(read.facts.superclass_of == std::vector<int64_t>{0, 1, 1});
    // 2^16 - 1 and 2^32 - 1 are no classes; -1 of int64 has the bits of 2^64 - 1.
    write_tensor_file(folder / "l.safetensors",
                      {{"scores", scores}, {"labels", at::tensor({0, -1}, at::kLong).to(type)}});
    const std::string largest = type == at::kUInt16   ? "is 65535"
                                : type == at::kUInt32 ? "is 4294967295"
                                                      : "is 18446744073709551615";
    CHECK_THROWS_WITH(read_score_file(folder / "l.safetensors"),
                      Contains("l.safetensors'") && Contains("image 1") && Contains(largest));
  }
  write_tensor_file(
      folder / "c.safetensors",
      {{"scores", scores}, {"labels", labels}, {"train_counts", at::tensor({1, 2, -1}, at::kLong).to(at::kUInt64)}});
  CHECK_THROWS_WITH(read_score_file(folder / "c.safetensors"),
                    Contains("train_counts") && Contains("class 2 is 18446744073709551615"));
  write_tensor_file(folder / "s.safetensors",
                    {{"scores", superclasses.view({1, 3}).to(at::kUInt16)}, {"labels", at::zeros({1}, at::kLong)}});
  CHECK_THROWS_WITH(read_score_file(folder / "s.safetensors"), Contains("floating-point"));
}

TEST_CASE("scores that do not fit together are refused with the file's name") {
  const test::TemporaryFolder folder;
  const at::Tensor scores = at::zeros({2, 3}), labels = at::tensor({2, 0}, at::kLong);
  const auto check_refused = [&](const TensorMap& tensors, const std::string& reason, const TextMap& metadata = {}) {
    write_tensor_file(folder / "s.safetensors", tensors, metadata);
    CHECK_THROWS_WITH(read_score_file(folder / "s.safetensors"), Contains("s.safetensors'") && Contains(reason));
  };
  check_refused({{"scores", scores}}, "has no labels");
  check_refused({{"logits", scores}, {"labels", labels}}, "has no scores");
  check_refused({{"scores", scores.view({6})}, {"labels", labels}}, "must be [images, classes]");
  check_refused({{"scores", scores.to(at::kLong)}, {"labels", labels}}, "must be [images, classes]");
  check_refused({{"scores", scores}, {"labels", at::zeros({3}, at::kLong)}},
                "labels must be [2] integers, and are [3] Long");
  check_refused({{"scores", scores}, {"labels", labels.to(at::kFloat)}}, "labels must be [2] integers");
  check_refused({{"scores", scores}, {"labels", at::tensor({0, 3}, at::kLong)}}, "the label of image 1 is 3");
  check_refused({{"scores", scores}, {"labels", at::tensor({-1, 0}, at::kLong)}}, "the label of image 0 is -1");
  check_refused({{"scores", scores}, {"labels", labels}, {"train_counts", labels}},
                "train_counts must be [3] integers");
  check_refused({{"scores", scores}, {"labels", labels}, {"superclass_of", at::tensor({0, 1, 3}, at::kLong)}},
                "superclass_of holds 3");
  check_refused({{"scores", scores}, {"labels", labels}}, "2 names for 3 classes", {{"class_names", R"(["a", "b"])"}});
  check_refused({{"scores", scores}, {"labels", labels}}, "no JSON list", {{"class_names", "[1, 2, 3]"}});
  at::Tensor bad = scores.clone();
  bad.index_put_({at::tensor(1), at::tensor(2)}, at::tensor(NAN));
  check_refused({{"scores", bad}, {"labels", labels}}, "the score of image 1 for class 2 is nan");
  CHECK_THROWS_WITH(read_score_file(folder / "s.safetensors"), !Contains("logarithm"));
  bad.index_put_({at::tensor(1), at::tensor(2)}, at::tensor(-INFINITY));
  check_refused({{"scores", bad}, {"labels", labels}}, "logarithm");
  folder.write("one.npy", std::string("\x93NUMPY\1\0v\0{'descr': '<f4'", 25));
  CHECK_THROWS_WITH(read_score_file(folder / "one.npy"), Contains("one.npy'") && Contains(".npz"));
}

TEST_CASE("probabilities and percentages are told from logits") {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({20, 6});
  CHECK(scale_of(logits.softmax(1)) == ScoreScale::kProbabilities);
  CHECK(scale_of(logits.to(at::kDouble).softmax(1)) == ScoreScale::kProbabilities);
  CHECK(scale_of(logits.softmax(1).to(at::kBFloat16).to(at::kFloat)) == ScoreScale::kProbabilities);
  CHECK(scale_of(logits.softmax(1) * 100) == ScoreScale::kPercentages);
  for (const at::Tensor& other : {logits, logits.log_softmax(1), logits.sigmoid(), logits.relu(),
                                  logits.softmax(1) * 10, at::zeros({5, 6}), logits.softmax(1) - 0.01}) {
    CHECK(scale_of(other) == ScoreScale::kLogits);
  }
  // One image that is none is enough.
  CHECK(scale_of(at::cat({logits.softmax(1), at::full({1, 6}, 0.5)})) == ScoreScale::kLogits);
}

TEST_CASE("rounded probabilities of many classes are probabilities") {
  at::manual_seed(1);
  for (const int64_t classes : {10, 1000, 20000}) {
    const at::Tensor exact = (at::randn({30, classes}, at::kDouble) * 4).softmax(1);
    const at::Tensor sums = exact.round(4).sum(1);
    INFO(classes << " classes, sums of " << sums.min().item<double>() << " to " << sums.max().item<double>());
    CHECK(scale_of(exact.round(4)) == ScoreScale::kProbabilities);
    CHECK(scale_of((exact * 100).round(2).to(at::kFloat)) == ScoreScale::kPercentages);
  }
  CHECK(scale_of((at::randn({200, 10}) * 2).softmax(1).round(2)) == ScoreScale::kProbabilities);
}

TEST_CASE("all labels of an image come back, and need no single ones beside") {
  const test::TemporaryFolder folder;
  ScoreFile scores = some_scores();
  scores.scores.label_sets = at::tensor({0, 1, 1, 1, 0, 0}).view({2, 3}).to(at::kBool);
  write_score_file(folder / "s.safetensors", scores, {});
  const ScoreFile read = read_label_set_file(folder / "s.safetensors");
  CHECK(at::equal(read.scores.label_sets, scores.scores.label_sets));
  CHECK(at::equal(read.scores.scores, scores.scores.scores));
  CHECK(at::equal(read.scores.labels, scores.scores.labels));
  CHECK(read.facts.names == scores.facts.names);
  CHECK(at::equal(read_score_file(folder / "s.safetensors").scores.labels, scores.scores.labels));
  write_tensor_file(folder / "other.safetensors",
                    {{"scores", scores.scores.scores}, {"label_sets", scores.scores.label_sets.to(at::kByte)}});
  for (const ScoreFile& other :
       {read_label_set_file(folder / "other.safetensors"), read_score_file(folder / "other.safetensors")}) {
    CHECK(at::equal(other.scores.label_sets, scores.scores.label_sets));
    CHECK(at::equal(other.scores.labels, at::tensor({1, 0}, at::kLong)));
  }
}

TEST_CASE("label sets that are wrong are refused") {
  const test::TemporaryFolder folder;
  const auto read = [&](const at::Tensor& sets) {
    write_tensor_file(folder / "s.safetensors", {{"scores", at::zeros({2, 3})}, {"label_sets", sets}});
    return read_label_set_file(folder / "s.safetensors");
  };
  CHECK_NOTHROW(read(at::ones({2, 3}, at::kLong)));
  CHECK_THROWS_WITH(read(at::ones({3, 3}, at::kLong)), Contains("label_sets") && Contains("[2, 3]"));
  CHECK_THROWS_WITH(read(at::ones({2, 3})), Contains("label_sets") && Contains("Float"));
  CHECK_THROWS_WITH(read(at::full({2, 3}, 2, at::kLong)), Contains("label_sets") && Contains("0 and 1"));
  CHECK_THROWS_WITH(read(at::tensor({1, 1, 0, 0, 0, 0}, at::kLong).view({2, 3})), Contains("image 1"));
  write_tensor_file(folder / "single.safetensors",
                    {{"scores", at::zeros({2, 3})}, {"labels", at::zeros({2}, at::kLong)}});
  CHECK_THROWS_WITH(read_label_set_file(folder / "single.safetensors"), Contains("has no label_sets"));
}

TEST_CASE("two files must be of one model and its classes") {
  const ScoreFile file = some_scores();
  ScoreFile other = file;
  check_same_model("a", file, "b", other);
  other.model = "";
  other.facts.names.clear();
  check_same_model("a", file, "b", other);
  other.facts.names = {"oak", "yew", "\"ash\""};
  CHECK_THROWS_WITH(check_same_model("a", file, "b", other), Contains("class 1 is \"elm\" in 'a' and \"yew\" in 'b'"));
  other.facts.classes = 4;
  CHECK_THROWS_AS(check_same_model("a", file, "b", other), ConfigError);
  other = file;
  other.model = "def";
  CHECK_THROWS_WITH(check_same_model("a", file, "b", other), Contains("'a' and 'b' are scores of two models"));
}

}  // namespace settrain
