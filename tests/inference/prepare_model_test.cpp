#include "src/inference/prepare_model.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "tests/inference/stored_run.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using Catch::Contains;

TrainedModel with_rules_of(const test::StoredRun& run, const std::string& form,
                           const std::vector<std::string>& settings = {}) {
  TrainedModel model = open_trained_model(test::registries(), run.folder().last_checkpoint(), at::kCPU, settings);
  model.rules =
      StoredRules{.temperature = 1, .calibrated_on = "images", .inference = form, .rules = {CalibratedRule{}}};
  return model;
}

at::Tensor scores_of(const TrainedModel& model) {
  const c10::InferenceMode inference;
  at::manual_seed(1);
  const at::Tensor images = at::randn({3, model.card.channels, model.card.input_height, model.card.input_width});
  return forward(*model.model, images, model.policy).scores;
}

TEST_CASE("a model answers in the form of run.inference, or in that of its rules") {
  const test::StoredRun run;
  run.save("last", std::nullopt, 1);
  const auto file = run.folder().last_checkpoint();
  TrainedModel model = open_trained_model(test::registries(), file, at::kCPU);
  const at::Tensor exact = scores_of(model);
  CHECK(prepare_to_answer(model, {}) == InferenceForm::kFast);
  CHECK(test::near(scores_of(model), exact));

  TrainedModel old = with_rules_of(run, "exact");
  CHECK(prepare_to_answer(old, {}) == InferenceForm::kExact);
  CHECK(scores_of(old).equal(exact));

  const std::vector<std::string> asked{"run.inference=exact"};
  TrainedModel other = with_rules_of(run, "fast", asked);
  const std::string log = test::logged([&] { CHECK(prepare_to_answer(other, asked) == InferenceForm::kExact); });
  CHECK_THAT(log, Contains("calibrated with run.inference: fast") && Contains("answer with exact"));
}

TEST_CASE("a run scores by run.inference, and a setting may change it") {
  const test::StoredRun run;
  run.save("last", std::nullopt, 1);
  TrainedRun fast = run.open({"last"}), exact = run.open({"last"}, {"run.inference=exact"});
  CHECK(prepare_run(fast.experiment) == InferenceForm::kFast);
  CHECK(prepare_run(exact.experiment) == InferenceForm::kExact);
}

TEST_CASE("a form whose scores are not the exact ones is not taken, with a warning") {
  const test::StoredRun run;
  run.save("last", std::nullopt, 1);
  TrainedRun opened = run.open({"last"});
  const at::NoGradGuard no_grad;
  // Two numbers of 1e7 that cancel: the exact form rounds them in float32, the fast one in float64.
  for (const auto& [name, tensor] : state_dict(*opened.experiment.model)) {
    if (name == "bn1.running_mean" || name == "bn1.bias") tensor.fill_(1e7);
  }
  const std::string log = test::logged([&] { CHECK(prepare_run(opened.experiment) == InferenceForm::kExact); });
  CHECK_THAT(log, Contains("run.inference: fast") && Contains("answers are exact"));
}

}  // namespace
}  // namespace settrain
