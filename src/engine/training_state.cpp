#include "src/engine/training_state.h"

#include <fmt/format.h>

#include <charconv>

namespace settrain {

void add_state(const TrainingState& state, Checkpoint& checkpoint) {
  checkpoint.set_integer("state.epoch", state.epoch);
  checkpoint.set_integer("state.batch", state.batch);
  checkpoint.set_integer("state.step", state.step);
  checkpoint.set_real("state.loss_sum", state.sum.loss_sum);
  checkpoint.set_integer("state.correct", state.sum.correct);
  checkpoint.set_integer("state.count", state.sum.count);
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
  state.early_loss = checkpoint.real("state.early_loss");
  state.late_loss = checkpoint.real("state.late_loss");
  const std::string& seconds = checkpoint.text("time.epoch_s");
  std::from_chars(seconds.data(), seconds.data() + seconds.size(), state.seconds);
  return state;
}

}  // namespace settrain
