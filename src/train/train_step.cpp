#include "src/train/train_step.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "models/model.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/optim/clip.h"
#include "src/train/aten_seed.h"
#include "src/train/non_finite.h"

namespace settrain {

namespace {

SumOverProcesses sum_where(bool wanted, ProcessGroup& group) {
  if (!wanted || group.world_size() == 1) return {};
  return [&group](const at::Tensor& mine) { return group.ordered_all_reduce(mine); };
}

}  // namespace

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
      statistics_(model, sum_where(settings.sync_batch_norm, group)) {
  if (group.world_size() > 1) {
    gradients_ = make_gradient_sum(group, optimizer.parameters(), settings.bucket_bytes);
  }
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
    if (micro_batch.number % group_.world_size() != group_.rank()) continue;
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
    sums = run_with_graph(inputs, number);
  } else {
    PhaseTimer timer(phases, computation_.device);
    sums = compute(inputs, plan, number, timer);
  }
  // The loss' own tensors lie on the CPU: only a loss that has some is waited for.
  if (!loss_.state().empty() && stop_.item<float>() == 0) loss_.update(number.lr);
  return {sums, plan.count, [this, inputs, plan, number](size_t failed) { explain(inputs, plan, number, failed); }};
}

at::Tensor TrainStep::run_with_graph(const StepInputs& inputs, const StepNumber& number) {
  updates_ = false;  // compute() itself may fail before it says so
  try {
    return (*graph_)(inputs, number.epoch);
  } catch (const c10::OutOfMemoryError&) {
    if (!graph_->is_captured() || updates_) throw;
  }
  log::info(fmt::format("[train] step {}: no memory beside the captured CUDA graph, which is dropped", number.step));
  graph_->drop();
  statistics_.release();
  seed_for(inputs.parts[0], number);
  return (*graph_)(inputs, number.epoch);
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

bool TrainStep::is_normalised_together(const StepPlan::Round& round) const {
  return statistics_.are_shared() && std::ssize(round) == group_.world_size();
}

// Of several that were normalised together the first.
std::vector<StepPlan::MicroBatch> TrainStep::with_own_statistics(const StepPlan& plan) const {
  std::vector<StepPlan::MicroBatch> all;
  for (const StepPlan::Round& round : plan.rounds) {
    all.insert(all.end(), round.begin(), is_normalised_together(round) ? round.begin() + 1 : round.end());
  }
  return all;
}

at::Tensor TrainStep::rows_of(const std::vector<StepPlan::MicroBatch>& micro_batches, const at::Tensor& rows) {
  const at::Tensor everybodys = group_.all_gather(rows);  // [world, rounds, columns]
  std::vector<at::Tensor> picked;
  for (const StepPlan::MicroBatch& micro_batch : micro_batches) {
    picked.push_back(everybodys[micro_batch.number % group_.world_size()][micro_batch.number / group_.world_size()]);
  }
  return at::stack(picked);
}

void TrainStep::add_gradients(const StepPart& part, const StepInputs& inputs, const StepNumber& number,
                              const at::Tensor& row, PhaseTimer& timer) {
  const auto [input, value] = evaluate(part, number, inputs.step());
  if (settings_.metrics) settings_.metrics->watch(input.output);
  timer.end(&StepPhases::forward);

  // The mean over the whole step, whatever its batches' sizes.
  value.sum.div(inputs.divisor().to(value.sum.scalar_type())).backward();
  timer.end(&StepPhases::backward);

  const c10::NoGradGuard no_grad;
  const at::Tensor correct = input.output.prediction().argmax(1).eq(input.labels).sum();
  row[0].copy_(value.sum.detach());
  row[1].copy_(correct);
  if (settings_.metrics) row.slice(0, 2).copy_(settings_.metrics->sums(input.output, input.labels));
  timer.end(&StepPhases::forward);
}

at::Tensor TrainStep::compute(const StepInputs& inputs, const StepPlan& plan, const StepNumber& number,
                              PhaseTimer& timer) {
  const int64_t measured = settings_.metrics ? std::ssize(settings_.metrics->names()) : 0;
  const at::Tensor rows = at::zeros({std::ssize(plan.rounds), 2 + measured}, stop_.options().dtype(at::kDouble));
  std::vector<at::Tensor> statistics;
  updates_ = false;
  optimizer_.zero_grad();
  if (gradients_) gradients_->start();
  timer.end(&StepPhases::update);
  size_t part = 0;
  for (const StepPlan::Round& round : plan.rounds) {
    std::vector<int64_t> contributors;
    for (const StepPlan::MicroBatch& micro_batch : round)
      contributors.push_back(micro_batch.number % group_.world_size());
    const at::Tensor row = rows[std::ssize(statistics)];
    statistics.push_back(statistics_.record(is_normalised_together(round)));
    if (gradients_) gradients_->begin_round(/*is_last=*/statistics.size() == plan.rounds.size());
    if (std::ranges::count(contributors, group_.rank()) > 0) {
      if (part > 0) seed_for(inputs.parts[part], number);
      add_gradients(inputs.parts[part++], inputs, number, row, timer);
    }
    if (gradients_) gradients_->end_round(contributors);
  }
  statistics_.release();
  const c10::NoGradGuard no_grad;
  const at::Tensor sums = rows_of(plan.all(), rows);
  updates_ = true;
  statistics_.replay(rows_of(with_own_statistics(plan), at::stack(statistics)));
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
  const int64_t failed = plan.all()[part].number, owner = failed % group_.world_size();
  const StepPlan::Round& round = plan.rounds[static_cast<size_t>(failed / group_.world_size())];
  const bool together = is_normalised_together(round);
  std::string message;
  if (together || owner == group_.rank()) {
    model_.train();
    const c10::NoGradGuard no_grad;
    const at::Tensor unused = statistics_.record(together);
    const int64_t own = failed - owner + group_.rank();
    const auto found = std::ranges::find(inputs.parts, own, &StepPart::micro_batch);
    seed_for(*found, number);
    const PartValue again = evaluate(*found, number, inputs.step());
    if (owner == group_.rank()) message = non_finite_message(model_, again.input, again.value, number);
    statistics_.release();
  }
  message = group_.all_gather(message)[static_cast<size_t>(owner)];
  if (group_.world_size() == 1) throw NumericalError(message);
  throw AgreedError(fmt::format("process {}: {}", owner, message));
}

}  // namespace settrain
