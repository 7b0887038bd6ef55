#include "src/train/non_finite.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/train/step_inputs.h"

namespace settrain {
namespace {

bool finite(const at::Tensor& t) {
  return !t.is_floating_point() || at::isfinite(t).all().item<bool>();
}

// The name of the first parameter or buffer that is not finite, or an empty string.
std::string first_non_finite(const Model& model) {
  for (const auto& [name, tensor] : state_dict(model)) {
    if (!finite(tensor)) return "model." + name;
  }
  return "";
}

std::string first_non_finite(const Model& model, const LossInput& input) {
  const std::string parameter = first_non_finite(model);
  if (!parameter.empty()) return parameter;
  if (input.output.features.defined() && !finite(input.output.features)) return "the features";
  if (!finite(input.output.scores)) return "the scores";
  return "the loss";
}

constexpr const char* kAdvice = "A lower optimizer.lr, a schedule.warmup_epochs or a train.clip_norm usually helps";

}  // namespace

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
