#include "src/train/step_result.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "metrics/entries.h"
#include "metrics/label_rank.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

bool is_finite(const at::Tensor& t) {
  return !t.is_floating_point() || at::isfinite(t).all().item<bool>();
}

// The name of the first parameter or buffer that is not finite, or an empty string.
std::string first_non_finite(const Model& model) {
  for (const auto& [name, tensor] : state_dict(model)) {
    if (!is_finite(tensor)) return "model." + name;
  }
  return "";
}

std::string first_non_finite(const Model& model, const LossInput& input) {
  const std::string parameter = first_non_finite(model);
  if (!parameter.empty()) return parameter;
  if (input.output.features.defined() && !is_finite(input.output.features)) return "the features";
  if (!is_finite(input.output.scores)) return "the scores";
  return "the loss";
}

constexpr const char* kAdvice = "A lower optimizer.lr, a schedule.warmup_epochs or a train.clip_norm usually helps";

}  // namespace

StepMetrics::StepMetrics(const TrainOptions& options)
    : top_k_(options.top_k), gradient_nonzeros_(options.gradient_nonzeros) {
  std::erase(top_k_, 1);
  for (const int64_t k : top_k_) names_.push_back(topk_name(k));
  if (gradient_nonzeros_) names_.emplace_back("gradient_nonzeros");
}

void StepMetrics::watch(const ModelOutput& output) const {
  if (gradient_nonzeros_ && output.prediction().requires_grad()) output.prediction().retain_grad();
}

at::Tensor StepMetrics::sums(const ModelOutput& output, const at::Tensor& labels) const {
  const at::Tensor scores = output.prediction().detach();
  std::vector<at::Tensor> sums;
  if (!top_k_.empty()) {
    const at::Tensor ranks = label_ranks(scores, labels);
    for (const int64_t k : top_k_) sums.push_back(ranks.lt(k).sum().to(at::kDouble));
  }
  if (gradient_nonzeros_) {
    const at::Tensor& gradient = output.prediction().grad();
    sums.push_back(gradient.defined() ? gradient.ne(0).sum().to(at::kDouble)
                                      : at::zeros({}, scores.options().dtype(at::kDouble)));
  }
  return at::stack(sums);
}

void StepMetrics::fill(const at::Tensor& row, const LossInput& input, const LossValue& value) const {
  const c10::NoGradGuard no_grad;
  const at::Tensor ranks = label_ranks(input.output.prediction(), input.labels);
  if (row.is_cpu()) {
    auto* const sums = row.mutable_data_ptr<double>();
    sums[kLossSum] = value.sum.item<double>();
    const auto* const rank = ranks.const_data_ptr<int64_t>();
    sums[kCorrect] = static_cast<double>(std::count(rank, rank + ranks.numel(), 0));
  } else {
    row[kLossSum].copy_(value.sum);
    row[kCorrect].copy_(ranks.eq(0).sum());
  }
  if (!names_.empty()) row.slice(0, kFirstMeasured).copy_(sums(input.output, input.labels));
}

void stop_where_not_finite(const at::Tensor& sums, at::Tensor& stop) {
  const at::Tensor losses = sums.select(1, StepMetrics::kLossSum);
  if (!losses.is_cpu()) {
    stop.copy_(at::maximum(stop, at::isfinite(losses).all().logical_not().to(at::kFloat)));
    return;
  }
  for (int64_t i = 0; i < losses.size(0); ++i) {
    if (!std::isfinite(losses.const_data_ptr<double>()[i * losses.stride(0)])) stop.fill_(1);
  }
}

StepResult& StepResult::operator+=(const StepResult& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  count += other.count;
  measured.resize(std::max(measured.size(), other.measured.size()));
  for (size_t i = 0; i < other.measured.size(); ++i) measured[i] += other.measured[i];
  return *this;
}

LaunchedStep::LaunchedStep(const at::Tensor& sums, int64_t count, Explain explain)
    : count_(count), sums_(sums.to(at::kCPU, /*non_blocking=*/true)), explain_(std::move(explain)) {
  if (sums.is_cpu()) return;
  copied_.emplace(sums.device().type());
  copied_->record(c10::impl::VirtualGuardImpl(sums.device().type()).getStream(sums.device()));
}

StepResult LaunchedStep::result() const {
  StepResult result;
  if (count_ == 0) return result;
  if (copied_) copied_->synchronize();
  const double* row = sums_.const_data_ptr<double>();
  const int64_t columns = sums_.size(1);
  for (int64_t part = 0; part < sums_.size(0); ++part, row += columns) {
    if (!std::isfinite(row[StepMetrics::kLossSum])) explain_(static_cast<size_t>(part));
    result += {row[StepMetrics::kLossSum],
               static_cast<int64_t>(row[StepMetrics::kCorrect]),
               0,
               {row + StepMetrics::kFirstMeasured, row + columns}};
  }
  result.count = count_;
  return result;
}

PhaseTimer::PhaseTimer(StepPhases* phases, c10::Device device) : phases_(phases), device_(device) {
  if (!phases_) return;
  wait_for(device_);
  last_ = std::chrono::steady_clock::now();
}

void PhaseTimer::end(double StepPhases::*phase) {
  if (!phases_) return;
  wait_for(device_);
  const auto now = std::chrono::steady_clock::now();
  phases_->*phase += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

std::string non_finite_message(const Model& model, const LossInput& input, const LossValue& value,
                               const StepNumber& number) {
  constexpr int64_t kMostIds = 8;
  const at::Tensor wrong = at::isfinite(value.per_sample.detach()).logical_not().cpu();
  const at::Tensor wrong_ids = input.sample_ids.cpu().masked_select(wrong);
  if (wrong_ids.numel() == 0) {
    return fmt::format(
        "the loss was not finite at step {}, but it is when the step is repeated: the "
        "computation is not deterministic, or the device is faulty. Try "
        "train.deterministic: true or train.graph: off",
        number.step);
  }
  std::string ids;
  for (int64_t i = 0; i < std::min(kMostIds, wrong_ids.numel()); ++i) {
    ids += (i > 0 ? ", " : "") + std::to_string(wrong_ids[i].item<int64_t>());
  }
  if (wrong_ids.numel() > kMostIds) ids += ", ...";
  return fmt::format(
      "the loss is not finite at step {}: {} of the batch's {} samples (ids {}); learning rate {}, largest "
      "|score| {}; the first tensor that is not finite is {}. {}",
      number.step, wrong_ids.numel(), wrong.numel(), ids, number.lr,
      std::abs(input.output.scores.detach().abs().max().item<double>()),  // a NaN's sign says nothing
      first_non_finite(model, input), kAdvice);
}

void check_finite(const Model& model, Loss& loss, int64_t step) {
  std::string parameter = first_non_finite(model);
  for (const auto& [name, tensor] : loss.state()) {
    // Their sum needs no memory, and they may be large.
    if (parameter.empty() && !std::isfinite(tensor.sum().item<double>())) parameter = "loss." + name;
  }
  if (parameter.empty()) return;
  throw NumericalError(fmt::format("after step {} {} is not finite. {}", step, parameter, kAdvice));
}

}  // namespace settrain
