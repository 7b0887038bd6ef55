#include "src/train/train_step.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>

#include "models/model.h"
#include "src/optim/clip.h"
#include "src/train/aten_seed.h"
#include "src/train/non_finite.h"

namespace settrain {

TrainStep::TrainStep(Model& model, Loss& loss, Optimizer& optimizer, const Computation& computation,
                     const StepSettings& settings)
    : model_(model),
      loss_(loss),
      optimizer_(optimizer),
      computation_(computation),
      settings_(settings),
      to_device_(computation.device),
      stop_(at::zeros({}, at::TensorOptions(computation.device).dtype(at::kFloat))) {
  if (settings_.metrics && settings_.metrics->names().empty()) settings_.metrics = nullptr;
  if (settings_.mix && !settings_.mix->is_on()) settings_.mix = nullptr;
  if (!settings_.capture) return;
  graph_.emplace(settings_.capture, [this](const StepInputs& inputs) {
    PhaseTimer untimed(nullptr, computation_.device);
    return compute(inputs, number_, untimed);
  });
}

LaunchedStep TrainStep::launch(const std::vector<Batch>& batches, const StepNumber& number, StepPhases* phases) {
  int64_t count = 0;
  double divisor = 0;
  for (const Batch& batch : batches) {
    count += batch.size();
    if (batch.size() > 0) divisor += loss_.divisor(batch.labels, number.epoch);
  }
  if (count == 0) return {};
  if (divisor == 0) divisor = 1;  // no sample has a weight, and every gradient is 0

  const StepInputs inputs = to_device_(batches, number, divisor);
  number_ = number;
  // Dropout draws from ATen's own generator: tied to the step, it repeats after a resume.
  seed_aten(settings_.seed, kSeedOfStep, number.step);
  model_.train();
  at::Tensor sums;
  if (graph_ && !phases) {
    sums = (*graph_)(inputs, number.epoch);
  } else {
    PhaseTimer timer(phases, computation_.device);
    sums = compute(inputs, number, timer);
  }
  // The loss' own tensors lie on the CPU: only a loss that has some is waited for.
  if (!loss_.state().empty() && stop_.item<float>() == 0) loss_.update(number.lr);
  return {sums, count, [this, inputs, number](size_t part) { explain(inputs, number, part); }};
}

void TrainStep::end_epoch() {
  if (graph_) graph_->drop();
}

TrainStep::PartValue TrainStep::evaluate(const StepPart& part, size_t index, const StepNumber& number,
                                         const at::Tensor& step) {
  LossInput input;
  input.labels = part.labels;
  input.label_sets = part.label_sets;
  input.sample_ids = part.sample_ids;
  input.epoch = number.epoch;
  input.noise_key = {settings_.seed, number.step, part.first_position};
  if (step.is_cuda()) input.noise_key.step_on_device = step.const_data_ptr<int64_t>();
  if (!settings_.mix) {
    input.output = forward(model_, part.images, computation_);
    const LossValue value = loss_(input);
    return {std::move(input), value};
  }
  const MixedBatch mixed = mix(*settings_.mix, as_input(part.images, computation_), input.labels,
                               {settings_.seed, number.step, static_cast<int64_t>(index)});
  input.output = forward(model_, mixed.images, computation_);
  const LossValue value = mixed_loss(loss_, input, mixed);
  if (mixed.share < 0.5) input.labels = mixed.partner_labels;
  return {std::move(input), value};
}

at::Tensor TrainStep::compute(const StepInputs& inputs, const StepNumber& number, PhaseTimer& timer) {
  const at::Tensor step = inputs.step();
  optimizer_.zero_grad();
  timer.end(&StepPhases::update);
  std::vector<at::Tensor> sums;
  for (size_t i = 0; i < inputs.parts.size(); ++i) {
    const auto [input, value] = evaluate(inputs.parts[i], i, number, step);
    if (settings_.metrics) settings_.metrics->watch(input.output);
    timer.end(&StepPhases::forward);

    // The mean over the whole step, whatever its batches' sizes.
    value.sum.div(inputs.divisor().to(value.sum.scalar_type())).backward();
    timer.end(&StepPhases::backward);

    const c10::NoGradGuard no_grad;
    const at::Tensor correct = input.output.prediction().argmax(1).eq(input.labels).sum();
    at::Tensor row = at::stack({value.sum.detach().to(at::kDouble), correct.to(at::kDouble)});
    if (settings_.metrics) row = at::cat({row, settings_.metrics->sums(input.output, input.labels)});
    sums.push_back(row);
    stop_.copy_(at::maximum(stop_, at::isfinite(row[0]).logical_not().to(at::kFloat)));
    timer.end(&StepPhases::forward);
  }
  if (settings_.clip_norm > 0) clip_gradients(optimizer_.parameters(), settings_.clip_norm);
  optimizer_.step(inputs.lr(), stop_);
  optimizer_.zero_grad();  // a captured step would keep their memory
  timer.end(&StepPhases::update);
  return at::stack(sums);
}

void TrainStep::explain(const StepInputs& inputs, const StepNumber& number, size_t part) {
  seed_aten(settings_.seed, kSeedOfStep, number.step);
  model_.train();
  const c10::NoGradGuard no_grad;
  std::optional<PartValue> found;
  // The parts before it draw their dropout first.
  for (size_t i = 0; i <= part; ++i) found = evaluate(inputs.parts[i], i, number, inputs.step());
  throw_non_finite(model_, found->input, found->value, number);
}

}  // namespace settrain
