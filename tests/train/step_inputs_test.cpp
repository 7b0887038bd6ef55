#include "src/train/step_inputs.h"

#include "tests/support/catch2.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using test::samples;

TEST_CASE("a step's inputs are its batches with samples, and its numbers") {
  const InputStream to_device(at::kCPU);
  Batch with_sets = samples(5, 3);
  with_sets.set_offsets = at::arange(4, at::kLong);
  with_sets.set_classes = at::arange(3, at::kLong);
  const StepInputs inputs = to_device({samples(0, 5), Batch(), with_sets}, {.step = 41, .lr = 0.3, .epoch = 2}, 7.5);
  REQUIRE(inputs.parts.size() == 2);
  CHECK(inputs.parts[1].images.equal(samples(5, 3).images));
  CHECK(inputs.parts[1].labels.equal(samples(5, 3).labels));
  CHECK_FALSE(inputs.parts[0].label_sets.defined());
  CHECK(inputs.parts[1].label_sets.classes.equal(at::arange(3, at::kLong)));
  CHECK(inputs.lr().item<double>() == 0.3);
  CHECK(inputs.divisor().item<double>() == 7.5);
  CHECK(inputs.step().item<int64_t>() == 41);
}

TEST_CASE("inputs are alike in shapes, kinds and layout") {
  const InputStream to_device(at::kCPU);
  const auto inputs = [&](const std::vector<Batch>& batches) { return to_device(batches, {}, 1); };
  const StepInputs one = inputs({samples(0, 4)});
  CHECK(alike(one, inputs({samples(4, 4)})));
  CHECK_FALSE(alike(one, inputs({samples(0, 3)})));
  CHECK_FALSE(alike(one, inputs({samples(0, 4), samples(4, 4)})));
  Batch last = samples(0, 4), bytes = samples(0, 4);
  last.images = last.images.contiguous(at::MemoryFormat::ChannelsLast);
  bytes.images = bytes.images.to(at::kByte);
  CHECK_FALSE(alike(one, inputs({last})));
  CHECK_FALSE(alike(one, inputs({bytes})));
}

TEST_CASE("inputs are copied into others, which stay where they are") {
  const InputStream to_device(at::kCPU);
  const StepInputs from = to_device({samples(4, 4)}, {.step = 2, .lr = 0.2}, 4);
  const StepInputs to = cloned(to_device({samples(0, 4)}, {.step = 1, .lr = 0.1}, 3));
  const void* const place = to.parts[0].images.const_data_ptr();
  copy_into(to, from);
  CHECK(to.parts[0].images.equal(from.parts[0].images));
  CHECK(to.parts[0].labels.equal(from.parts[0].labels));
  CHECK(to.numbers.equal(from.numbers));
  CHECK(to.parts[0].images.const_data_ptr() == place);
  CHECK(from.parts[0].images.const_data_ptr() != place);
}

}  // namespace
}  // namespace settrain
