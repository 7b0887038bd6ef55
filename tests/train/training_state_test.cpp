#include "src/train/training_state.h"

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("a training state comes back from a checkpoint to the last bit") {
  TrainingState state;
  state.epoch = 3;
  state.batch = 17;
  state.step = 123456789012345;
  state.sum = {0.1, 42, 99};
  state.early_loss = 1e-300;
  state.late_loss = 1.0 / 3;
  state.seconds = 12.3456;
  Checkpoint checkpoint;
  add_state(state, checkpoint);
  const TrainingState read = read_state(checkpoint);
  CHECK(read.epoch == 3);
  CHECK(read.batch == 17);
  CHECK(read.step == 123456789012345);
  CHECK(read.sum.loss_sum == 0.1);
  CHECK(read.sum.correct == 42);
  CHECK(read.sum.count == 99);
  CHECK(read.early_loss == 1e-300);
  CHECK(read.late_loss == 1.0 / 3);
  CHECK(read.seconds == 12.346);  // to the millisecond
}

TEST_CASE("what steps have measured comes back, and leaves no trace where nothing was") {
  TrainingState state;
  state.sum.measured = {0.1, 1.0 / 3};
  Checkpoint checkpoint, without;
  add_state(state, checkpoint);
  CHECK(read_state(checkpoint).sum.measured == state.sum.measured);
  add_state({}, without);
  CHECK(without.tensors.size() + 1 == checkpoint.tensors.size());
  CHECK(read_state(without).sum.measured.empty());
  checkpoint.set_real("state.measured", 1);
  CHECK_THROWS_WITH(read_state(checkpoint), Catch::Contains("state.measured"));
}

TEST_CASE("what no two runs share is no tensor") {
  TrainingState fast, slow;
  fast.seconds = 1;
  slow.seconds = 2;
  Checkpoint a, b;
  add_state(fast, a);
  add_state(slow, b);
  CHECK(a.tensors.size() == b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) CHECK(tensor.equal(b.tensors.at(name)));
  CHECK(a.metadata != b.metadata);
}

TEST_CASE("a state that lacks an entry is refused") {
  Checkpoint checkpoint;
  add_state({}, checkpoint);
  checkpoint.tensors.erase("state.batch");
  CHECK_THROWS_WITH(read_state(checkpoint), Catch::Contains("state.batch"));
}

}  // namespace
}  // namespace settrain
