#include "src/train/training_state.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr const char* kMeasured = "state.measured";

std::vector<double> read_measured(const Checkpoint& checkpoint) {
  const auto found = checkpoint.tensors.find(kMeasured);
  if (found == checkpoint.tensors.end()) return {};
  const at::Tensor& saved = found->second;
  if (saved.scalar_type() != at::kDouble || saved.dim() != 1) {
    throw RunError(fmt::format("'{}': expected a row of float64 values in '{}'", checkpoint.file.string(), kMeasured));
  }
  const at::Tensor sums = saved.contiguous();
  return {sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel()};
}

}  // namespace

void add_state(const TrainingState& state, Checkpoint& checkpoint) {
  checkpoint.set_integer("state.epoch", state.epoch);
  checkpoint.set_integer("state.batch", state.batch);
  checkpoint.set_integer("state.step", state.step);
  checkpoint.set_real("state.loss_sum", state.sum.loss_sum);
  checkpoint.set_integer("state.correct", state.sum.correct);
  checkpoint.set_integer("state.count", state.sum.count);
  if (!state.sum.measured.empty()) checkpoint.tensors[kMeasured] = at::tensor(state.sum.measured, at::kDouble);
  checkpoint.set_real("state.early_loss", state.early_loss);
  checkpoint.set_real("state.late_loss", state.late_loss);
  checkpoint.metadata["time.epoch_s"] = fmt::format("{:.3f}", state.seconds);
}

TrainingState read_state(const Checkpoint& checkpoint) {
  TrainingState state;
  state.epoch = checkpoint.integer("state.epoch");
  state.batch = checkpoint.integer("state.batch");
  state.step = checkpoint.integer("state.step");
  state.sum.loss_sum = checkpoint.real("state.loss_sum");
  state.sum.correct = checkpoint.integer("state.correct");
  state.sum.count = checkpoint.integer("state.count");
  state.sum.measured = read_measured(checkpoint);
  state.early_loss = checkpoint.real("state.early_loss");
  state.late_loss = checkpoint.real("state.late_loss");
  state.seconds = parse_number<double>(checkpoint.text("time.epoch_s")).value_or(0);
  return state;
}

}  // namespace settrain
