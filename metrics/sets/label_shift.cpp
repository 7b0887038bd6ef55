#include "metrics/sets/label_shift.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/linalg_pinv.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>

namespace settrain {
namespace {

/// Below the score of any class that occurs, and far from the largest double: differences of scores stay finite.
constexpr double kNever = -1e30;

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel()};
}

}  // namespace

std::vector<double> score_offsets(const std::vector<double>& wanted, const std::vector<double>& of_model) {
  std::vector<double> offsets;
  for (size_t c = 0; c < wanted.size(); ++c) {
    offsets.push_back(wanted[c] > 0 ? std::log(wanted[c]) - std::log(of_model[c])
                                    : -std::numeric_limits<double>::infinity());
  }
  return offsets;
}

at::Tensor with_offsets(const at::Tensor& scores, const std::vector<double>& offsets) {
  std::vector<double> finite;
  for (const double offset : offsets) finite.push_back(std::isfinite(offset) ? offset : kNever);
  return scores.detach().to(at::kCPU, at::kDouble).add(at::tensor(finite, at::kDouble)).contiguous();
}

std::vector<double> shares_by_likelihood(const at::Tensor& probabilities, const std::vector<double>& of_model) {
  constexpr int kMostSteps = 2000;
  constexpr double kEnough = 1e-7;  // summed change of a step
  const at::Tensor assumed = at::tensor(of_model, at::kDouble).div_(at::tensor(of_model, at::kDouble).sum());
  const auto images = static_cast<double>(probabilities.size(0));
  at::Tensor shares = assumed;
  for (int step = 0; step < kMostSteps; ++step) {
    const at::Tensor ratio = shares.div(assumed);
    const at::Tensor next = probabilities.t().mv(probabilities.mv(ratio).reciprocal()).mul(ratio).div(images);
    const double change = next.sub(shares).abs().sum().item<double>();
    shares = next;
    if (change < kEnough) break;
  }
  return numbers_of(shares.div(shares.sum()));
}

std::vector<double> shares_by_confusion(const at::Tensor& scores, const at::Tensor& labels,
                                        const at::Tensor& unlabelled) {
  const int64_t classes = scores.size(1);
  const auto images = static_cast<double>(labels.size(0));
  const at::Tensor pairs = scores.argmax(1).mul(classes).add(labels);
  const at::Tensor confusion = at::bincount(pairs, {}, classes * classes).to(at::kDouble).div(images);
  const at::Tensor square = confusion.view({classes, classes});
  const at::Tensor answers = at::bincount(unlabelled.argmax(1), {}, classes).to(at::kDouble);
  const at::Tensor weights = at::linalg_pinv(square).mv(answers.div(static_cast<double>(unlabelled.size(0))));
  const at::Tensor shares = weights.mul(square.sum(0)).clamp_min(0);
  const double sum = shares.sum().item<double>();
  if (!(sum > 0)) return {};
  return numbers_of(shares.div(sum));
}

}  // namespace settrain
