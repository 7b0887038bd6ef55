#include "src/measure/check/loss_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "losses/make_loss.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/measure/check/loss_golden.h"
#include "src/measure/check/tolerance.h"

namespace settrain {
namespace {

/// What a loss answered: float64, on the CPU.
struct Answer {
  at::Tensor per_sample, mean, gradient, gradient_multi, gradient_estimates;  // undefined: not to be compared
};

/// Feeds `golden` with its scores and noise cast to `dtype`.
Answer answer(Loss& loss, const LossGoldenCase& golden, at::Device device, at::ScalarType dtype) {
  const auto leaf = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, dtype).detach().clone().requires_grad_() : tensor;
  };
  LossInput input;
  input.output.scores = leaf(golden.scores);
  input.output.scores_multi = leaf(golden.scores_multi);
  input.labels = golden.labels.to(device);
  if (golden.label_sets.defined()) {
    input.label_sets = {golden.label_sets.offsets.to(device), golden.label_sets.classes.to(device)};
  }
  if (golden.estimate_logits.defined()) input.estimate_logits = leaf(golden.estimate_logits);
  if (golden.noise) input.noise = golden.noise->to(device, dtype);
  const LossValue value = loss(input);
  const at::Tensor mean = value.mean();
  mean.backward();
  const auto result = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().to(at::kCPU, at::kDouble) : at::Tensor();
  };
  const auto gradient_of = [&](const at::Tensor& leaf) { return leaf.defined() ? result(leaf.grad()) : leaf; };
  return {result(value.per_sample), result(mean), gradient_of(input.output.scores),
          gradient_of(input.output.scores_multi), gradient_of(input.estimate_logits.value_or(at::Tensor()))};
}

/// Largest |got - expected| / max(size, |expected|); infinite where a value is NaN.
double relative_error(const at::Tensor& got, const at::Tensor& expected, double size) {
  const at::Tensor error = got.sub(expected).abs().div(expected.abs().clamp_min(size));
  const double largest = error.max().item<double>();
  return std::isnan(largest) ? std::numeric_limits<double>::infinity() : largest;
}

/// The size of the numbers that an answer is made from: rounding errors are in proportion to it.
struct Sizes {
  double losses = 1, gradient = 1;
};

double largest_error(const Answer& got, const Answer& expected, const Sizes& sizes) {
  double error = relative_error(got.mean, expected.mean, sizes.losses);
  const auto compare = [&error](const at::Tensor& a, const at::Tensor& b, double size) {
    if (b.defined()) error = std::max(error, relative_error(a, b, size));
  };
  compare(got.per_sample, expected.per_sample, sizes.losses);
  compare(got.gradient, expected.gradient, sizes.gradient);
  compare(got.gradient_multi, expected.gradient_multi, sizes.gradient);
  compare(got.gradient_estimates, expected.gradient_estimates, sizes.gradient);
  return error;
}

CheckRow row(const std::string& name, const std::string& what, double error, double tolerance,
             const std::string& note) {
  return {name, what, error, tolerance, error <= tolerance, note};
}

LossGoldenCase rounded_to_float32(LossGoldenCase golden) {
  for (at::Tensor* input : {&golden.scores, &golden.scores_multi, &golden.estimate_logits}) {
    if (input->defined()) *input = input->to(at::kFloat).to(at::kDouble);
  }
  if (golden.noise) golden.noise = golden.noise->to(at::kFloat).to(at::kDouble);
  return golden;
}

void check_case(const LossGoldenCase& golden, const std::string& name, Loss& loss, at::Device device,
                std::vector<CheckRow>& rows) {
  const std::string note = golden.gradient.defined() ? "" : "the formula has no gradient here: values only";
  const double size_of_scores = std::max(1.0, golden.scores.abs().max().item<double>());
  const Answer expected{golden.is_batch_level ? at::Tensor() : golden.per_sample, golden.loss, golden.gradient,
                        golden.gradient_multi, golden.gradient_estimates};
  rows.push_back(row(name, golden.name + ", float64",
                     largest_error(answer(loss, golden, device, at::kDouble), expected, {}),
                     size_of_scores > 1000 ? kLargeScoresTolerance : tolerance(device, at::kDouble), note));

  const LossGoldenCase rounded = rounded_to_float32(golden);
  Answer in_float64 = answer(loss, rounded, device, at::kDouble);
  if (!golden.gradient.defined()) {
    in_float64.gradient = in_float64.gradient_multi = in_float64.gradient_estimates = at::Tensor();
  }
  rows.push_back(row(name, golden.name + ", float32 against float64",
                     largest_error(answer(loss, rounded, device, at::kFloat), in_float64,
                                   {size_of_scores * loss.score_scale(), loss.score_scale()}),
                     tolerance(device, at::kFloat), note));
}

void check_file(const LossGolden& golden, const LossRegistry& registry, at::Device device,
                std::vector<CheckRow>& rows) {
  const std::string& name = golden.loss;
  for (const LossGoldenCase& golden_case : golden.cases) {
    const auto fail = [&](const std::string& why) { rows.push_back({name, golden_case.name, 0, 0, false, why}); };
    try {
      std::vector<std::string> overrides = golden_case.overrides;
      overrides.push_back("loss.name=" + name);
      const LossContext context{.num_classes = golden_case.scores.size(1),
                                .class_counts = golden_case.class_counts,
                                .train_ids = {},
                                .train_labels = {}};
      const auto loss = make_loss(registry, config::load({{loss_section(registry)}, {}}, {}, overrides), context);
      check_case(golden_case, name, *loss, device, rows);
    } catch (const Error& error) {
      fail(error.what());
    }
  }
}

}  // namespace

std::vector<CheckRow> check_losses(const LossRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files) {
  std::vector<CheckRow> rows;
  for (const std::filesystem::path& file : files) {
    const LossGolden golden = read_loss_golden(file);
    const std::vector<std::string> names = registry.names();
    if (std::find(names.begin(), names.end(), golden.loss) == names.end()) {
      rows.push_back({golden.loss, file.filename().string(), 0, 0, false, "this build has no loss of that name"});
      continue;
    }
    check_file(golden, registry, device, rows);
  }
  return rows;
}

}  // namespace settrain
