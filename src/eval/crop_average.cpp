#include "src/eval/crop_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>

#include "losses/ops/polynomials.h"

namespace settrain {
namespace {

// [rows, classes] float64, rows that add up to 1.
at::Tensor topk_probabilities(const at::Tensor& scaled, int64_t k) {
  if (k >= scaled.size(1)) throw std::invalid_argument("average_crops: K must be less than the number of classes");
  // Evaluation switches gradients off; this function needs one.
  const c10::InferenceMode with_gradients(false);
  const at::AutoGradMode enabled(true);
  at::Tensor x = scaled.clone().set_requires_grad(true);
  const at::Tensor log_sigma = log_elementary_symmetric(x, k).select(-1, k).sum();
  return torch::autograd::grad({log_sigma}, {x}).front().div(static_cast<double>(k));
}

}  // namespace

at::Tensor average_crops(const at::Tensor& scores, int64_t crops, const CropAverage& average) {
  const auto mean = [crops](const at::Tensor& values) { return values.view({-1, crops, values.size(1)}).mean(1); };
  const at::Tensor exact = scores.to(at::kDouble);
  if (average.kind == CropAverage::kScores) return mean(exact).to(at::kFloat);
  const at::Tensor scaled = exact.mul(average.score_scale);
  const at::Tensor probabilities =
      average.kind == CropAverage::kTopk ? topk_probabilities(scaled, average.k) : at::softmax(scaled, 1);
  constexpr double kLeast = 1e-300;  // a probability of 0 has no logarithm
  return mean(probabilities).clamp_min(kLeast).log().div(average.score_scale).to(at::kFloat);
}

}  // namespace settrain
