// The noised losses estimate the exact ones, with the noise that training draws.
#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr int64_t kBatch = 8, kClasses = 30, kSteps = 100;

struct Samples {
  at::Tensor mean, error;                    // of the losses: [batch]
  at::Tensor gradient_mean, gradient_error;  // [batch, classes]
};

std::pair<at::Tensor, at::Tensor> mean_and_standard_error(const std::vector<at::Tensor>& samples) {
  const at::Tensor all = at::stack(samples);
  return {all.mean(0), all.std(0) / std::sqrt(static_cast<double>(samples.size()))};
}

struct Values {
  at::Tensor per_sample, gradient;
};

Values values_of(Loss& loss, const at::Tensor& scores, int64_t step) {
  const at::Tensor s = scores.clone().requires_grad_();
  LossInput input = test::input_of(s, at::arange(kBatch, at::kLong).remainder(scores.size(1)));
  input.noise_key.step = step;
  const LossValue value = loss(input);
  value.sum.backward();
  return {value.per_sample.detach(), s.grad()};
}

Samples sample(Loss& loss, const at::Tensor& scores) {
  std::vector<at::Tensor> losses, gradients;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Values values = values_of(loss, scores, step);
    losses.push_back(values.per_sample);
    gradients.push_back(values.gradient);
  }
  Samples result;
  std::tie(result.mean, result.error) = mean_and_standard_error(losses);
  std::tie(result.gradient_mean, result.gradient_error) = mean_and_standard_error(gradients);
  return result;
}

std::unique_ptr<Loss> build(const std::string& name, std::vector<std::string> settings, const std::string& draws = "") {
  if (!draws.empty()) settings.push_back(draws);
  return test::build_loss(name, test::context_of(kClasses), settings);
}

at::Tensor mean_scores() {
  at::manual_seed(7);
  return at::rand({kBatch, kClasses}, at::kDouble) * 2 - 1;
}

// With margins that keep every hinge active, so that the mean of the losses is the loss of the mean.
TEST_CASE("The mean over many draws is the exact loss, within four standard errors") {
  for (const char* k : {"k=1", "k=5", "k=29"}) {
    for (const char* epsilon : {"epsilon=0.01", "epsilon=0.2", "epsilon=1"}) {
      for (const bool imbalanced : {false, true}) {
        CAPTURE(k, epsilon, imbalanced);
        const std::string suffix = imbalanced ? "_imbalanced" : "";
        std::vector<std::string> settings{k, epsilon, imbalanced ? "max_margin=60" : "margin=20"};
        const Values exact = values_of(*build("exact_topk" + suffix, settings), mean_scores(), 0);
        const Samples noised = sample(*build("noised_topk" + suffix, settings, "num_draws=50"), mean_scores());
        CHECK(exact.per_sample.gt(0).all().item<bool>());
        CHECK(noised.error.gt(0).all().item<bool>());
        CHECK((noised.mean - exact.per_sample).abs().le(4 * noised.error).all().item<bool>());
        // A class that had the rank in few of the 5,000 draws, or in none, has a poor estimate of its own error.
        const double scale = imbalanced ? 60 : 1;
        const at::Tensor difference = (noised.gradient_mean - exact.gradient).abs();
        CHECK(difference.le(5 * noised.gradient_error + 2e-3 * scale).all().item<bool>());
      }
    }
  }
}

// E[(x)_+] >= (E[x])_+, by the spread of x, which falls with the root of the number of draws.
TEST_CASE("At the kink the sampled loss is the larger one, by less the more draws") {
  // The second largest of three equal scores is 0 on average.
  const at::Tensor scores = at::zeros({kBatch, 3}, at::kDouble);
  const auto build_three = [](const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.end(), {"k=1", "epsilon=1", "margin=0"});
    return test::build_loss(name, test::context_of(3), settings);
  };
  CHECK(values_of(*build_three("exact_topk", {}), scores, 0).per_sample.max().item<double>() < 1e-9);
  std::vector<double> excess;
  for (const char* draws : {"num_draws=1", "num_draws=9", "num_draws=144"}) {
    excess.push_back(sample(*build_three("noised_topk", {draws}), scores).mean.mean().item<double>());
  }
  CHECK(excess[0] / excess[1] == Approx(3).epsilon(0.2));
  CHECK(excess[1] / excess[2] == Approx(4).epsilon(0.2));
}

}  // namespace
}  // namespace settrain
