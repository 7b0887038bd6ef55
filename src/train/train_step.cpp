#include "src/train/train_step.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <utility>

#include "models/model.h"
#include "src/core/log.h"

namespace settrain {

TrainStep::TrainStep(Model& model, Loss& loss, Optimizer& optimizer, const ComputePolicy& policy, ProcessGroup& group,
                     StepSettings settings)
    : model_(model),
      loss_(loss),
      optimizer_(optimizer),
      policy_(policy),
      settings_(std::move(settings)),
      to_device_(policy.device, settings_.seed),
      shared_(group, model, optimizer.parameters(), settings_.bucket_bytes, settings_.sync_batch_norm),
      stop_(at::zeros({}, at::TensorOptions(policy.device).dtype(at::kFloat))) {
  if (!settings_.capture) return;
  graph_.emplace(settings_.capture, [this](const StepInputs& inputs) {
    PhaseTimer untimed(nullptr, policy_.device);
    return compute(inputs, untimed);
  });
}

at::Tensor TrainStep::compute(const StepInputs& inputs, PhaseTimer& timer) {
  has_begun_update_ = false;
  optimizer_.zero_grad();
  timer.end(&StepPhases::update);  // clearing counts as update

  const at::Tensor step = inputs.step();
  // `row` takes the micro-batch's sums.
  shared_.for_each_micro_batch(
      inputs, settings_.metrics.columns(), [&](const MicroBatch& batch, const at::Tensor& row) {
        const bool is_first = &batch == &inputs.parts.front();  // launch() seeded it, since a captured step cannot
        if (!is_first) seed_for(batch, inputs.number);
        auto [mixed, input] = prepare(batch, inputs.number, step);

        input.output = forward(model_, mixed.images, policy_);
        const LossValue loss = mixed_loss(loss_, input, mixed);
        settings_.metrics.watch(input.output);
        timer.end(&StepPhases::forward);

        // The mean over the whole step, whatever its batches' sizes.
        loss.sum.backward(inputs.divisor().to(loss.sum.scalar_type()).reciprocal());
        timer.end(&StepPhases::backward);

        // The loss has used both labels. The metrics count the label with the larger share, see StepResult.
        if (mixed.share < 0.5) input.labels = mixed.partner_labels;
        settings_.metrics.fill(row, input, loss);
        timer.end(&StepPhases::forward);  // the metrics count as forward
      });

  const c10::NoGradGuard no_grad;
  const at::Tensor sums = shared_.gather_rows(inputs.plan);
  has_begun_update_ = true;
  shared_.sum_gradients(inputs.plan);  // and brings batch norm's running statistics up to date
  stop_where_not_finite(sums, stop_);
  // By the norm of the gradients of the whole step.
  if (settings_.clip_norm > 0) clip_gradients(optimizer_.parameters(), settings_.clip_norm);
  optimizer_.step(inputs.lr(), stop_);
  optimizer_.zero_grad();  // a captured step would keep their memory
  timer.end(&StepPhases::update);
  return sums;
}

LaunchedStep TrainStep::launch(const std::vector<Batch>& batches, const StepNumber& number, StepPhases* phases) {
  StepPlan plan = shared_.plan(loss_, batches, number);
  const int64_t samples = plan.samples;
  if (samples == 0) return {};
  const StepInputs inputs = to_device_(batches, number, std::move(plan));
  model_.train();
  // A captured step cannot seed the generator itself. It has one micro-batch, which is seeded here for that reason.
  if (!inputs.parts.empty()) seed_for(inputs.parts[0], number);
  at::Tensor sums;
  if (graph_ && !phases) {
    sums = run_with_graph(inputs);
  } else {
    PhaseTimer timer(phases, policy_.device);
    sums = compute(inputs, timer);
  }
  // The loss' own tensors lie on the CPU. Only for a loss that has some does the host wait for the device here.
  if (!loss_.state().empty() && stop_.item<float>() == 0) loss_.update(number.lr, number.lr_factor);
  return {sums, samples, [this, inputs](size_t failed) {
            shared_.explain(inputs, failed, [&](const MicroBatch& batch) { return compute_again(inputs, batch); });
          }};
}

at::Tensor TrainStep::run_with_graph(const StepInputs& inputs) {
  has_begun_update_ = false;  // the graph may run out of memory before it calls compute(), or replay without calling it
  try {
    return (*graph_)(inputs, inputs.number.epoch);
  } catch (const c10::OutOfMemoryError&) {
    if (!graph_->is_captured() || has_begun_update_) throw;
  }
  log::info(
      fmt::format("[train] step {}: no memory beside the captured CUDA graph, which is dropped", inputs.number.step));
  graph_->drop();
  shared_.release();
  seed_for(inputs.parts[0], inputs.number);
  return (*graph_)(inputs, inputs.number.epoch);
}

void TrainStep::end_epoch() {
  if (graph_) graph_->drop();
}

// Dropout draws from ATen's own generator: tied to the micro-batch, it repeats after a resume and in any process.
void TrainStep::seed_for(const MicroBatch& batch, const StepNumber& number) const {
  seed_aten(settings_.seed, kSeedOfStep, number.step, batch.number);
}

std::pair<MixedBatch, LossInput> TrainStep::prepare(const MicroBatch& batch, const StepNumber& number,
                                                    const at::Tensor& step) const {
  LossInput input = batch.loss_input;
  if (step.defined()) input.noise_key.step_on_device = step.const_data_ptr<int64_t>();
  return {
      mix(settings_.mix, as_input(batch.images, policy_), input.labels, {settings_.seed, number.step, batch.number}),
      input};
}

std::string TrainStep::compute_again(const StepInputs& inputs, const MicroBatch& batch) {
  model_.train();
  const c10::NoGradGuard no_grad;
  seed_for(batch, inputs.number);
  const at::Tensor step = inputs.step();
  auto [mixed, input] = prepare(batch, inputs.number, step);
  input.output = forward(model_, mixed.images, policy_);
  const LossValue loss = mixed_loss(loss_, input, mixed);
  return non_finite_message(model_, input, loss, inputs.number);
}

}  // namespace settrain
