#include <ATen/ATen.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "datasets/dataset.h"
#include "datasets/decoding/decode_image.h"
#include "datasets/image_files.h"
#include "src/report/report_parts.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;
using Places = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr const char* kNoPictures = "a build without image files makes no pictures";

AverageKOptions average_k(config::Reals ks) {
  return {std::move(ks), AverageKScore::kSoftmax, Ties::kKeepAll, "same"};
}

// Four images of one pixel, three classes in two superclasses; the second image is taken for class 2.
Answers some_answers(const AnswerOptions& rule) {
  Answers answers;
  answers.checkpoint = "best-val-top1";
  answers.dataset.class_names = {"</script>", "a & b", "c"};
  answers.dataset.superclass_names = {"s", "t"};
  answers.dataset.superclass_of = {0, 0, 1};
  answers.split = "test";
  answers.dataset.test = {"test",
                          std::make_shared<MemoryImages>(std::vector<uint8_t>{0, 60, 120, 180}, 1, 1, 1),
                          {3, 2, 1, 0},
                          {0, 0, 1, 2}};
  answers.train_counts = {10, 20, 0};
  answers.scores.scores = at::tensor({5.0, 0.0, 0.0, 1.0, 0.0, 4.0, 0.0, 3.0, 2.9, 0.0, 0.0, 9.0}).reshape({4, 3});
  answers.scores.labels = at::tensor(answers.dataset.test.labels);
  answers.sets = judged_sets(rule, answers.scores, {answers.train_counts, 1.0, nullptr});
  return answers;
}

TEST_CASE("pairs of confused classes are counted and ordered") {
  const Places labels{0, 0, 0, 1, 1, 2, 2}, predicted{1, 1, 0, 0, 2, 0, 0};
  const std::vector<Confusion> expected{{0, 1, 2}, {2, 0, 2}, {1, 0, 1}};
  CHECK((most_confused(labels, predicted, 3) == expected));
  CHECK(most_confused(labels, labels, 3).empty());
  CHECK(to_superclasses({0, 2, 1}, {7, 8, 9}) == Places{7, 9, 8});
}

TEST_CASE("examples are spread over the split, and the largest sets come first") {
  const ChosenExamples chosen = choose_examples({1, 3, 2, 3, 1, 1}, {true, false, true, true, true, true}, 2);
  CHECK(chosen.correct == Places{0, 3});
  CHECK(chosen.missed == Places{1});
  CHECK(chosen.large == Places{1, 3});
  // Where all sets have one size, none is large.
  CHECK(choose_examples({2, 2}, {true, false}, 2).large.empty());
}

TEST_CASE("the sets are those of the K that was selected on, and the metric's own") {
  const SplitScores split = some_answers({average_k({1}), {{1}}, {}}).scores;
  const MetricContext context{{10, 20, 0}, 1.0, nullptr};
  const JudgedSets selected =
      judged_sets({average_k({1, 1.25, 2}), {{1}}, {"val/top1", "val/macro_avg1.25"}}, split, context);
  CHECK(selected.name == "avg1.25");
  CHECK(judged_sets({average_k({1, 2}), {{1}}, {"val/top2"}}, split, context).name == "avg2");
  CHECK(judged_sets({average_k({1, 2}), {{1}}, {"val/avg1_macro_f1"}}, split, context).name == "avg1");
  const EvaluationResult judged = make_average_k(average_k({1.25}))->compute(split, context);
  const at::Tensor hits = selected.in_set.gather(1, split.labels.unsqueeze(1));
  CHECK(hits.to(at::kDouble).mean().item<double>() == judged.values.front().value);
  CHECK(selected.in_set.sum().item<int64_t>() == 5);
  CHECK(selected.threshold.has_value());
}

TEST_CASE("without average-K the sets are the largest scores, ties to the lower class") {
  const SplitScores split{at::tensor({1.0, 1.0, 1.0, 0.0, 2.0, 1.0}).reshape({2, 3}), at::tensor({0, 2}, at::kLong)};
  const JudgedSets sets = judged_sets({average_k({}), {{1, 2, 5}}, {"val/top2"}}, split, {{1, 1, 1}, 1.0, nullptr});
  CHECK(sets.name == "top2");
  CHECK_FALSE(sets.threshold.has_value());
  CHECK(sets.in_set.equal(at::tensor({1, 1, 0, 0, 1, 1}).reshape({2, 3}).to(at::kBool)));
  // More than there are classes: all of them.
  CHECK(judged_sets({average_k({}), {{5}}, {}}, split, {{1, 1, 1}, 1.0, nullptr}).in_set.all().item<bool>());
}

TEST_CASE("answers are counted by class") {
  const ordered_json json = answers_json(some_answers({average_k({1.25}), {{1}}, {}}));
  CHECK(json["images"] == 4);
  CHECK(json["sets"] == "avg1.25");
  CHECK(json["classes"] ==
        ordered_json::parse(R"([["</script>", 10, 2, 1, 1], ["a & b", 20, 1, 1, 1], ["c", 0, 1, 1, 1]])"));
  CHECK(json["confusions"] == ordered_json::parse(R"({"errors": 1, "pairs": [["</script>", "c", 1, 2]]})"));
  CHECK(json["superclasses"] == ordered_json::parse(R"({"errors": 1, "pairs": [["s", "t", 1, 3]]})"));
}

TEST_CASE("answers are counted by organ, where the data set says what an image shows") {
  Answers answers = some_answers({average_k({1.25}), {{1}}, {}});
  CHECK_FALSE(answers_json(answers).contains("organs"));
  answers.organs = {"bark", "leaf", "", "leaf"};
  CHECK(answers_json(answers)["organs"] ==
        ordered_json::parse(R"({"without": 1, "rows": [["leaf", 2, 1, 1, 1.0], ["bark", 1, 1, 1, 1.0]]})"));
  // Where images were left out, nobody knows which answer is of which.
  answers.organs.emplace_back("leaf");
  CHECK_FALSE(answers_json(answers).contains("organs"));
}

TEST_CASE("an image's organ is found by the name of its file") {
  FileTable files;
  for (const char* name : {"1/a.jpg", "1/b.jpg", "2/c.jpg", "2/d.jpg"}) files.add(name);
  const Split split{"test", std::make_shared<ImageFiles>(std::move(files), ImageFileOptions{}), {3, 0, 1}, {1, 0, 0}};
  const auto record = [](const char* image, const char* organ) {
    return ImageRecord{.image = image,
                       .class_key = "1",
                       .split = "test",
                       .observation = "",
                       .organ = organ,
                       .author = "",
                       .licence = ""};
  };
  const ImageRecords records({record("a", "leaf"), record("b", ""), record("c", "bark")});
  CHECK(organs_of(records, split) == std::vector<std::string>{"", "leaf", ""});
  CHECK(organs_of(ImageRecords({}), split).empty());
}

TEST_CASE("answers are shown on their own images") {
  SKIP_UNLESS(!image_library_versions().empty(), kNoPictures);
  const ordered_json examples = answers_json(some_answers({average_k({1.25}), {{1}}, {}})).at("examples");
  CHECK(examples["correct"].size() == 3);
  REQUIRE(examples["missed"].size() == 1);
  CHECK(examples["missed"][0]["truth"] == "</script>");
  CHECK(examples["missed"][0]["hit"] == false);
  CHECK(examples["missed"][0]["set"][0][0] == "c");
  // Image 2 of the source is sample 1.
  Answers other = some_answers({average_k({1.25}), {{1}}, {}});
  other.dataset.test.images = std::make_shared<MemoryImages>(std::vector<uint8_t>{0, 0, 120, 0}, 1, 1, 1);
  CHECK(answers_json(other)["examples"]["missed"][0]["picture"] == examples["missed"][0]["picture"]);
  CHECK(examples["large"][0]["size"] == 2);
  CHECK(examples["large"][0]["truth"] == "a & b");
}

TEST_CASE("where images were left out no answer is shown on another's image") {
  Answers answers = some_answers({average_k({1.25}), {{1}}, {}});
  answers.dataset.test.ids.push_back(0);
  answers.dataset.test.labels.push_back(0);
  const ordered_json json = answers_json(answers);
  CHECK_FALSE(json.contains("examples"));
  CHECK(json["examples_missing"].get<std::string>().find("could not be read") != std::string::npos);
  CHECK(json["classes"].size() == 3);
}

TEST_CASE("where a picture cannot be made the counts stay, with the reason") {
  Answers answers = some_answers({average_k({1.25}), {{1}}, {}});
  answers.dataset.test.images = std::make_shared<MemoryImages>(std::vector<uint8_t>(8), 1, 1, 2);
  const ordered_json json = answers_json(answers);
  CHECK_FALSE(json.contains("examples"));
  CHECK_FALSE(json["examples_missing"].get<std::string>().empty());
  CHECK(json["classes"].size() == 3);
}

TEST_CASE("a threshold that is not finite has no number") {
  Answers answers = some_answers({average_k({1.25}), {{1}}, {}});
  answers.sets.threshold = -kInfinity;
  CHECK(answers_json(answers)["threshold"].is_null());
}

}  // namespace

namespace {

Image some_image(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<uint8_t>(i * i * 7 + i / 3));
  return image;
}

TEST_CASE("a thumbnail keeps small images and the proportions of large ones") {
  const Image small = some_image(5, 4, 3);
  const MemoryImages images(small.pixels, 5, 4, 3);
  CHECK(thumbnail(images, 0, 16).pixels == small.pixels);
  const Image wide = some_image(20, 40, 1);
  const Image shrunk = thumbnail(MemoryImages(wide.pixels, 20, 40, 1), 0, 16);
  CHECK(shrunk.width == 16);
  CHECK(shrunk.height == 8);
  CHECK(shrunk.pixels.size() == 128);
}

TEST_CASE("a picture's URI holds a PNG in base64, from its first to its last byte") {
  SKIP_UNLESS(!image_library_versions().empty(), kNoPictures);
  const std::string uri = picture_uri(some_image(3, 5, 3));
  CHECK(uri.starts_with("data:image/png;base64,iVBORw0KGgo"));
  // The end of every PNG, behind a multiple of three bytes, one byte more, or two.
  CHECK(
      (uri.ends_with("AAAAAElFTkSuQmCC") || uri.ends_with("AAAABJRU5ErkJggg==") || uri.ends_with("AAAASUVORK5CYII=")));
}

}  // namespace

}  // namespace settrain
