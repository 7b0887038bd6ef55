// Sets and p-values beside those that TorchCP, MAPIE and crepes answered with (scripts/record_sets_golden.py).
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/p_values.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

at::Tensor recorded_scores(const nlohmann::json& part, int64_t classes) {
  std::vector<double> values;
  for (const auto& row : part.at("scores")) {
    for (double score : row) values.push_back(score);
  }
  return at::tensor(values, at::kDouble).view({-1, classes});
}

nlohmann::json recorded(const char* file) {
  return nlohmann::json::parse(test::read_file(test::golden_path(file)));
}

/// The images of conformal.json.
struct RecordedImages {
  nlohmann::json golden = recorded("sets/conformal.json");
  int64_t classes = golden.at("classes");
  at::Tensor scores = recorded_scores(golden.at("calibration"), classes);
  at::Tensor labels = at::tensor(golden.at("calibration").at("labels").get<std::vector<int64_t>>());
  at::Tensor test = recorded_scores(golden.at("test"), classes);
};

uint64_t bits_of(const nlohmann::json& hexadecimal) {
  return std::stoull(hexadecimal.get<std::string>(), nullptr, 16);
}

/// Compares sets with those of a case, but for the images that rounding decides.
void check_sets(const at::Tensor& sets, const nlohmann::json& answer) {
  const auto near = answer.at("near").get<std::set<int64_t>>();
  CHECK(near.size() <= 2);
  for (int64_t image = 0; image < sets.size(0); ++image) {
    if (near.count(image) > 0) continue;
    uint64_t bits = 0;
    for (int64_t c = 0; c < sets.size(1); ++c) bits |= uint64_t{sets[image][c].item<bool>()} << c;
    CHECK(bits == bits_of(answer.at("sets")[static_cast<size_t>(image)]));
  }
}

TEST_CASE("sets equal those of TorchCP and MAPIE image by image") {
  const RecordedImages images;
  for (const auto& answer : images.golden.at("cases")) {
    CAPTURE(answer.at("rule"), answer.at("from"));
    const SetRule rule = parse_set_rule(answer.at("rule"));
    check_sets(sets_of(calibrate(rule, {.classes = images.classes}, images.scores, images.labels, 1), images.test),
               answer);
  }
}

TEST_CASE("sets for several labels equal those of MAPIE image by image") {
  const RecordedImages images;
  const nlohmann::json golden = recorded("sets/risk.json");
  at::Tensor label_sets = at::zeros(images.scores.sizes(), at::kBool);
  for (int64_t i = 0; i < label_sets.size(0); ++i) {
    const uint64_t bits = bits_of(golden.at("label_sets")[static_cast<size_t>(i)]);
    for (int64_t c = 0; c < images.classes; ++c) label_sets[i][c].fill_((bits >> c & 1) != 0);
  }
  for (const auto& answer : golden.at("cases")) {
    CAPTURE(answer.at("rule"), answer.at("probability"));
    const bool is_sigmoid = answer.at("probability") == "sigmoid";
    const ClassFacts facts{.classes = images.classes,
                           .probability = is_sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax};
    check_sets(sets_of(calibrate(parse_set_rule(answer.at("rule")), facts, images.scores, label_sets, 1), images.test),
               answer);
  }
}

TEST_CASE("p-values equal those of crepes image by image") {
  const RecordedImages images;
  const at::Tensor of_class = at::bincount(images.labels, {}, images.classes);
  for (const auto& answer : recorded("sets/p_values.json")) {
    CAPTURE(answer.at("rule"));
    const SetRule rule = parse_set_rule(answer.at("rule"));
    const bool is_classwise = rule.threshold == ConformalThreshold::kClasswise;
    const at::Tensor p =
        p_values_of(calibrate(rule, {.classes = images.classes}, images.scores, images.labels, 1), images.test);
    const at::Tensor beside = is_classwise ? of_class.add(1) : at::full_like(of_class, images.labels.size(0) + 1);
    const at::Tensor counts = p.mul(beside);
    CHECK(at::allclose(counts, counts.round(), 0, 1e-9));
    const auto near = answer.at("near").get<std::set<int64_t>>();
    CHECK(near.size() <= 2);
    for (int64_t image = 0; image < p.size(0); ++image) {
      if (near.count(image) > 0) continue;
      const auto wanted = answer.at("counts")[static_cast<size_t>(image)].get<std::vector<int64_t>>();
      CHECK(at::equal(counts[image].round().to(at::kLong), at::tensor(wanted, at::kLong)));
    }
  }
}

}  // namespace
}  // namespace settrain
