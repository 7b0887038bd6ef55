#include "src/train/step_inputs.h"

#include "src/train/step_graph.h"
#include "tests/support/catch2.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using test::samples;

TEST_CASE("a step's inputs are its batches with samples, and its numbers") {
  const InputStream to_device(at::kCPU, /*seed=*/9);
  Batch with_sets = samples(5, 3);
  with_sets.set_offsets = at::arange(4, at::kLong);
  with_sets.set_classes = at::arange(3, at::kLong);
  const StepPlan plan{.samples = 8, .divisor = 7.5, .own = {{0, 0}, {2, 5}}};
  const StepInputs inputs = to_device({samples(0, 5), Batch(), with_sets}, {.step = 41, .lr = 0.3, .epoch = 2}, plan);
  REQUIRE(inputs.parts.size() == 2);
  CHECK(inputs.parts[1].images.equal(samples(5, 3).images));
  CHECK(inputs.parts[1].loss_input.labels.equal(samples(5, 3).labels));
  CHECK_FALSE(inputs.parts[0].loss_input.label_sets.defined());
  CHECK(inputs.parts[1].loss_input.label_sets.classes.equal(at::arange(3, at::kLong)));
  CHECK(inputs.parts[1].number == 2);
  CHECK(inputs.parts[1].loss_input.epoch == 2);
  CHECK(inputs.parts[1].loss_input.noise_key.seed == 9);
  CHECK(inputs.parts[1].loss_input.noise_key.step == 41);
  CHECK(inputs.parts[1].loss_input.noise_key.first_position == 5);
  CHECK(inputs.lr().item<double>() == 0.3);
  CHECK(inputs.divisor().item<double>() == 7.5);
  CHECK_FALSE(inputs.step().defined());  // only kernels of a GPU read it
}

// The plan of a step that has so many batches.
StepPlan plan_of(size_t batches) {
  StepPlan plan{.divisor = 1};
  plan.own.resize(batches);
  return plan;
}

TEST_CASE("inputs are alike in shapes, kinds and layout") {
  const InputStream to_device(at::kCPU);
  const auto inputs = [&](const std::vector<Batch>& batches) {
    return to_device(batches, {}, plan_of(batches.size()));
  };
  const StepInputs one = inputs({samples(0, 4)});
  CHECK(are_alike(one, inputs({samples(4, 4)})));
  CHECK_FALSE(are_alike(one, inputs({samples(0, 3)})));
  CHECK_FALSE(are_alike(one, inputs({samples(0, 4), samples(4, 4)})));
  Batch last = samples(0, 4), bytes = samples(0, 4);
  last.images = last.images.contiguous(at::MemoryFormat::ChannelsLast);
  bytes.images = bytes.images.to(at::kByte);
  CHECK_FALSE(are_alike(one, inputs({last})));
  CHECK_FALSE(are_alike(one, inputs({bytes})));
}

TEST_CASE("inputs are copied into others, which stay where they are") {
  const InputStream to_device(at::kCPU);
  const StepInputs from = to_device({samples(4, 4)}, {.step = 2, .lr = 0.2}, plan_of(1));
  StepInputs to = cloned(to_device({samples(0, 4)}, {.step = 1, .lr = 0.1}, plan_of(1)));
  const void* const place = to.parts[0].images.const_data_ptr();
  copy_into(to, from);
  CHECK(to.parts[0].images.equal(from.parts[0].images));
  CHECK(to.parts[0].loss_input.labels.equal(from.parts[0].loss_input.labels));
  CHECK(to.numbers.equal(from.numbers));
  CHECK(to.number.step == 2);
  CHECK(to.parts[0].images.const_data_ptr() == place);
  CHECK(from.parts[0].images.const_data_ptr() != place);
}

}  // namespace
}  // namespace settrain
