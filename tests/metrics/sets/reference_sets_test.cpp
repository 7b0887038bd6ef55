// Sets beside those that TorchCP and MAPIE answered with (scripts/record_sets_golden.py).
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "metrics/sets/calibrate.h"
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

TEST_CASE("sets equal those of TorchCP and MAPIE image by image") {
  const auto golden = nlohmann::json::parse(test::read_file(test::golden_path("sets/conformal.json")));
  const int64_t classes = golden.at("classes");
  const auto& calibration = golden.at("calibration");
  const at::Tensor scores = recorded_scores(calibration, classes);
  const at::Tensor labels = at::tensor(calibration.at("labels").get<std::vector<int64_t>>());
  const at::Tensor images = recorded_scores(golden.at("test"), classes);
  for (const auto& answer : golden.at("cases")) {
    CAPTURE(answer.at("rule"), answer.at("from"));
    const SetRule rule = parse_set_rule(answer.at("rule"));
    const at::Tensor sets = sets_of(calibrate(rule, {.classes = classes}, scores, labels, 1), images);
    const auto near = answer.at("near").get<std::set<int64_t>>();
    CHECK(near.size() <= 2);
    for (int64_t image = 0; image < images.size(0); ++image) {
      if (near.count(image) > 0) continue;  // rounding decides these
      uint64_t bits = 0;
      for (int64_t c = 0; c < classes; ++c) bits |= uint64_t{sets[image][c].item<bool>()} << c;
      CHECK(bits == std::stoull(answer.at("sets")[static_cast<size_t>(image)].get<std::string>(), nullptr, 16));
    }
  }
}

}  // namespace
}  // namespace settrain
