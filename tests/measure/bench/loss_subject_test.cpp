#include "src/measure/bench/loss_subject.h"

#include <ATen/ATen.h>

#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::builtin_losses;

const LossCase kSmall{.loss = "", .batch = 6, .classes = 9, .k = 3, .draws = 2};

TEST_CASE("every loss with a gradient takes a step on what it requires") {
  for (const LossEntry& entry : builtin_losses().entries()) {
    if (!entry.has_gradient) continue;
    CAPTURE(entry.name);
    for (const LossMethod method : {LossMethod::kFast, LossMethod::kUnpruned, LossMethod::kPlain}) {
      LossCase what = kSmall;
      what.loss = entry.name;
      what.method = method;
      LossSubject subject(builtin_losses(), what, at::kCPU);
      CHECK(subject.memory() > 0.5);
      const ModelOutput& output = subject.input().output;
      const at::Tensor first = output.scores.grad().clone();
      CHECK(first.isfinite().all().item<bool>());
      CHECK(first.abs().sum().item<double>() > 0);
      subject.step();
      // Not the sum of two steps' gradients; noise differs from step to step.
      if (!LossSubject::draws_noise(entry) && entry.name != "role") CHECK(at::equal(output.scores.grad(), first));
      CHECK(output.scores_multi.defined() == entry.requirements.two_heads);
    }
  }
}

TEST_CASE("scores have their spread, and cosines that of the scores before their scale") {
  LossCase what{.loss = "cross_entropy", .batch = 64, .classes = 200, .scores_sd = 3};
  const at::Tensor scores = LossSubject(builtin_losses(), what, at::kCPU).input().output.scores;
  CHECK(scores.std().item<double>() == Approx(3).epsilon(0.05));
  what.scores_sd = 0.3;
  const at::Tensor closer = LossSubject(builtin_losses(), what, at::kCPU).input().output.scores;
  CHECK(at::allclose(closer * 10, scores));
  what.loss = "noised_topk_imbalanced";
  const at::Tensor cosines = LossSubject(builtin_losses(), what, at::kCPU).input().output.scores;
  CHECK(cosines.abs().max().item<double>() < 0.3);
  CHECK(at::allclose(cosines / cosines.std(), closer / closer.std()));
}

TEST_CASE("a config says what was asked for, where the loss has the key") {
  LossCase what = kSmall;
  what.loss = "noised_topk";
  const config::Config config = loss_config(builtin_losses(), what);
  CHECK(config.get<int64_t>("loss.k") == 3);
  CHECK(config.get<int64_t>("loss.num_draws") == 2);
  CHECK(config.get<double>("loss.epsilon") == 0.2);
  what.loss = "focal";
  CHECK(loss_config(builtin_losses(), what).get<std::string>("loss.name") == "focal");
}

}  // namespace
}  // namespace settrain
