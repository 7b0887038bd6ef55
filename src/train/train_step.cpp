#include "src/train/train_step.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "models/model.h"
#include "src/core/error.h"
#include "src/optim/clip.h"
#include "src/train/aten_seed.h"
#include "src/train/non_finite.h"

namespace settrain {

TrainStep::TrainStep(Model& model, Loss& loss, Optimizer& optimizer, const Computation& computation,
                     ProcessGroup& group, const StepSettings& settings)
    : model_(model),
      loss_(loss),
      optimizer_(optimizer),
      computation_(computation),
      group_(group),
      settings_(settings),
      to_device_(computation.device),
      stop_(at::zeros({}, at::TensorOptions(computation.device).dtype(at::kFloat))),
      statistics_(model) {
  if (group.world() > 1) gradients_.emplace(group, optimizer.parameters());
  if (settings_.metrics && settings_.metrics->names().empty()) settings_.metrics = nullptr;
  if (settings_.mix && !settings_.mix->is_on()) settings_.mix = nullptr;
  if (!settings_.capture) return;
  graph_.emplace(settings_.capture, [this](const StepInputs& inputs) {
    PhaseTimer untimed(nullptr, computation_.device);
    return compute(inputs, plan_, number_, untimed);
  });
}

LaunchedStep TrainStep::launch(const std::vector<Batch>& batches, const StepNumber& number, StepPhases* phases) {
  const StepPlan plan = plan_step(group_, loss_, batches, number);
  if (plan.count == 0) return {};

  StepInputs inputs = to_device_(batches, number, plan.divisor);
  size_t part = 0;
  for (const StepPlan::MicroBatch& micro_batch : plan.all()) {
    if (micro_batch.number % group_.world() != group_.rank()) continue;
    inputs.parts[part].micro_batch = micro_batch.number;
    inputs.parts[part++].first_position = micro_batch.first_position;
  }
  number_ = number;
  plan_ = plan;
  model_.train();
  at::Tensor sums;
  // A captured step cannot seed the generator itself: it has one micro-batch.
  if (!inputs.parts.empty()) seed_for(inputs.parts[0], number);
  if (graph_ && !phases) {
    sums = (*graph_)(inputs, number.epoch);
  } else {
    PhaseTimer timer(phases, computation_.device);
    sums = compute(inputs, plan, number, timer);
  }
  // The loss' own tensors lie on the CPU: only a loss that has some is waited for.
  if (!loss_.state().empty() && stop_.item<float>() == 0) loss_.update(number.lr);
  return {sums, plan.count, [this, inputs, plan, number](size_t failed) { explain(inputs, plan, number, failed); }};
}

// Dropout draws from ATen's own generator: tied to the micro-batch, it repeats after a resume and in any process.
void TrainStep::seed_for(const StepPart& part, const StepNumber& number) const {
  seed_aten(settings_.seed, kSeedOfStep, number.step, part.micro_batch);
}

void TrainStep::end_epoch() {
  if (graph_) graph_->drop();
}

TrainStep::PartValue TrainStep::evaluate(const StepPart& part, const StepNumber& number, const at::Tensor& step) {
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
                               {settings_.seed, number.step, part.micro_batch});
  input.output = forward(model_, mixed.images, computation_);
  const LossValue value = mixed_loss(loss_, input, mixed);
  if (mixed.share < 0.5) input.labels = mixed.partner_labels;
  return {std::move(input), value};
}

at::Tensor TrainStep::of_all(const at::Tensor& rows, const StepPlan& plan) {
  const at::Tensor everybodys = group_.gather(rows);  // [world, rounds, columns]
  std::vector<at::Tensor> picked;
  for (const StepPlan::MicroBatch& micro_batch : plan.all()) {
    picked.push_back(everybodys[micro_batch.number % group_.world()][micro_batch.number / group_.world()]);
  }
  return at::stack(picked);
}

at::Tensor TrainStep::compute(const StepInputs& inputs, const StepPlan& plan, const StepNumber& number,
                              PhaseTimer& timer) {
  const at::Tensor step = inputs.step();
  const int64_t measured = settings_.metrics ? std::ssize(settings_.metrics->names()) : 0;
  const auto rounds = static_cast<int64_t>(plan.rounds.size());
  const at::Tensor rows = at::zeros({rounds, 2 + measured}, stop_.options().dtype(at::kDouble));
  std::vector<at::Tensor> statistics;
  optimizer_.zero_grad();
  if (gradients_) gradients_->clear();
  timer.end(&StepPhases::update);
  size_t part = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<int64_t> contributors;
    for (const auto& micro_batch : plan.rounds[static_cast<size_t>(round)]) {
      contributors.push_back(micro_batch.number % group_.world());
    }
    statistics.push_back(statistics_.record());
    if (std::ranges::count(contributors, group_.rank()) > 0) {
      if (part > 0) seed_for(inputs.parts[part], number);
      const auto [input, value] = evaluate(inputs.parts[part++], number, step);
      if (settings_.metrics) settings_.metrics->watch(input.output);
      timer.end(&StepPhases::forward);

      // The mean over the whole step, whatever its batches' sizes.
      value.sum.div(inputs.divisor().to(value.sum.scalar_type())).backward();
      timer.end(&StepPhases::backward);

      const c10::NoGradGuard no_grad;
      const at::Tensor correct = input.output.prediction().argmax(1).eq(input.labels).sum();
      at::Tensor row = at::stack({value.sum.detach().to(at::kDouble), correct.to(at::kDouble)});
      if (settings_.metrics) row = at::cat({row, settings_.metrics->sums(input.output, input.labels)});
      rows[round].copy_(row);
      timer.end(&StepPhases::forward);
    }
    if (gradients_) gradients_->add_round(contributors);
  }
  statistics_.release();
  const c10::NoGradGuard no_grad;
  const at::Tensor sums = of_all(rows, plan);
  statistics_.replay(of_all(at::stack(statistics), plan));
  if (gradients_) gradients_->finish();
  const at::Tensor is_finite = at::isfinite(sums.select(1, 0)).all();
  stop_.copy_(at::maximum(stop_, is_finite.logical_not().to(at::kFloat)));
  if (settings_.clip_norm > 0) clip_gradients(optimizer_.parameters(), settings_.clip_norm);
  optimizer_.step(inputs.lr(), stop_);
  optimizer_.zero_grad();  // a captured step would keep their memory
  timer.end(&StepPhases::update);
  return sums;
}

void TrainStep::explain(const StepInputs& inputs, const StepPlan& plan, const StepNumber& number, size_t part) {
  const int64_t failed = plan.all()[part].number, owner = failed % group_.world();
  std::string message;
  if (owner == group_.rank()) {
    model_.train();
    const c10::NoGradGuard no_grad;
    const auto found = std::ranges::find(inputs.parts, failed, &StepPart::micro_batch);
    seed_for(*found, number);
    const PartValue again = evaluate(*found, number, inputs.step());
    message = non_finite_message(model_, again.input, again.value, number);
  }
  message = group_.gather(message)[static_cast<size_t>(owner)];
  throw NumericalError(group_.world() == 1 ? message : fmt::format("process {}: {}", owner, message));
}

}  // namespace settrain
