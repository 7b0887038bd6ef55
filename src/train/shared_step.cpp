#include "src/train/shared_step.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/core/error.h"

namespace settrain {
namespace {

SumOverProcesses sum_where(bool wanted, ProcessGroup& group) {
  if (!wanted || group.world_size() == 1) return {};
  return [&group](const at::Tensor& mine) { return group.ordered_all_reduce(mine); };
}

}  // namespace

SharedStep::SharedStep(ProcessGroup& group, const Model& model, std::vector<at::Tensor> parameters,
                       std::optional<int64_t> bucket_bytes, bool sync_batch_norm)
    : group_(group), statistics_(model, sum_where(sync_batch_norm, group)) {
  if (group.world_size() > 1) gradients_ = make_gradient_sum(group, std::move(parameters), bucket_bytes);
}

StepPlan SharedStep::plan(const Loss& loss, const std::vector<Batch>& batches, const StepNumber& number) {
  const int64_t world = group_.world_size();
  const int64_t rounds = (number.micro_batches + world - 1) / world;
  const at::Tensor mine = at::zeros({rounds, 2}, at::kDouble);  // samples and divisor of each batch
  auto* entry = mine.mutable_data_ptr<double>();
  for (const Batch& batch : batches) {
    *entry++ = static_cast<double>(batch.size());
    *entry++ = batch.size() > 0 ? loss.divisor(batch.labels, number.epoch) : 0;
  }
  const at::Tensor all = group_.all_gather(mine);  // [world, rounds, 2]
  StepPlan plan;
  plan.rounds.resize(static_cast<size_t>(rounds));
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t rank = 0; rank < world; ++rank) {
      const double* const batch = all.const_data_ptr<double>() + 2 * (rank * rounds + round);
      if (batch[0] == 0) continue;
      const StepPlan::Entry entry{round * world + rank, plan.samples};
      plan.rounds[static_cast<size_t>(round)].push_back(entry);
      if (rank == group_.rank()) plan.own.push_back(entry);
      plan.samples += static_cast<int64_t>(batch[0]);
      plan.divisor += batch[1];
    }
  }
  if (plan.divisor == 0) plan.divisor = 1;  // no sample has a weight, and every gradient is 0
  return plan;
}

void SharedStep::for_each_micro_batch(const StepInputs& inputs, int64_t columns, const Work& work) {
  const std::vector<StepPlan::Round>& rounds = inputs.plan.rounds;
  rows_ = at::zeros({std::ssize(rounds), columns}, inputs.numbers.options());
  recorded_.clear();
  if (gradients_) gradients_->start();
  size_t own = 0;
  for (const StepPlan::Round& round : rounds) {
    std::vector<int64_t> contributors;
    for (const StepPlan::Entry& entry : round) contributors.push_back(entry.number % group_.world_size());
    const at::Tensor row = rows_[std::ssize(recorded_)];
    recorded_.push_back(statistics_.record(is_normalised_together(round)));
    if (gradients_) gradients_->begin_round(/*is_last=*/recorded_.size() == rounds.size());
    if (std::ranges::count(contributors, group_.rank()) > 0) work(inputs.parts[own++], row);
    if (gradients_) gradients_->end_round(contributors);
  }
  statistics_.release();
}

at::Tensor SharedStep::gather_rows(const StepPlan& plan) {
  return gather(plan.all(), std::exchange(rows_, {}));
}

void SharedStep::sum_gradients(const StepPlan& plan) {
  // The first of the micro-batches that were normalised together stands for all of them.
  std::vector<StepPlan::Entry> with_own_statistics;
  for (const StepPlan::Round& round : plan.rounds) {
    with_own_statistics.insert(with_own_statistics.end(), round.begin(),
                               is_normalised_together(round) ? round.begin() + 1 : round.end());
  }
  const std::vector<at::Tensor> recorded = std::exchange(recorded_, {});
  if (statistics_.size() > 0) statistics_.replay(gather(with_own_statistics, at::stack(recorded)));
  if (gradients_) gradients_->finish();
}

void SharedStep::release() {
  statistics_.release();
  rows_.reset();
  recorded_.clear();
}

void SharedStep::explain(const StepInputs& inputs, size_t index, const Repeat& repeat) {
  const int64_t failed = inputs.plan.all()[index].number, owner = failed % group_.world_size();
  const StepPlan::Round& round = inputs.plan.rounds[static_cast<size_t>(failed / group_.world_size())];
  const bool together = is_normalised_together(round);
  std::string message;
  if (together || owner == group_.rank()) {
    const at::Tensor unused = statistics_.record(together);
    const int64_t own = failed - owner + group_.rank();
    message = repeat(*std::ranges::find(inputs.parts, own, &MicroBatch::number));
    statistics_.release();
  }
  message = group_.all_gather(message)[static_cast<size_t>(owner)];
  if (group_.world_size() == 1) throw NumericalError(message);
  throw AgreedError(fmt::format("process {}: {}", owner, message));
}

bool SharedStep::is_normalised_together(const StepPlan::Round& round) const {
  return statistics_.are_shared() && std::ssize(round) == group_.world_size();
}

at::Tensor SharedStep::gather(const std::vector<StepPlan::Entry>& entries, const at::Tensor& rows) {
  // A process alone has all of them already, in this order. In steps of a small network the copies below would show.
  if (group_.world_size() == 1 && std::ssize(entries) == rows.size(0)) return rows;
  const at::Tensor all = group_.all_gather(rows);  // [world, rounds, columns]
  std::vector<at::Tensor> picked;
  for (const StepPlan::Entry& entry : entries) {
    picked.push_back(all[entry.number % group_.world_size()][entry.number / group_.world_size()]);
  }
  return at::stack(picked);
}

}  // namespace settrain
