#include "src/train/step_plan.h"

#include <ATen/ops/zeros.h>

namespace settrain {

std::vector<StepPlan::MicroBatch> StepPlan::all() const {
  std::vector<MicroBatch> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  return all;
}

StepPlan plan_step(ProcessGroup& group, const Loss& loss, const std::vector<Batch>& batches, const StepNumber& number) {
  const int64_t world = group.world_size();
  const int64_t rounds = (number.micro_batches + world - 1) / world;
  const at::Tensor mine = at::zeros({rounds, 2}, at::kDouble);  // samples and divisor of each batch
  auto* entry = mine.mutable_data_ptr<double>();
  for (const Batch& batch : batches) {
    *entry++ = static_cast<double>(batch.size());
    *entry++ = batch.size() > 0 ? loss.divisor(batch.labels, number.epoch) : 0;
  }
  const at::Tensor everybodys = group.all_gather(mine);  // [world, rounds, 2]
  const auto* const known = everybodys.const_data_ptr<double>();
  StepPlan plan;
  plan.rounds.resize(static_cast<size_t>(rounds));
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t rank = 0; rank < world; ++rank) {
      const double* const batch = known + 2 * (rank * rounds + round);
      if (batch[0] == 0) continue;
      const auto samples = static_cast<int64_t>(batch[0]);
      plan.rounds[static_cast<size_t>(round)].push_back({round * world + rank, samples, plan.count});
      plan.count += samples;
      plan.divisor += batch[1];
    }
  }
  if (plan.divisor == 0) plan.divisor = 1;  // no sample has a weight, and every gradient is 0
  return plan;
}

}  // namespace settrain
