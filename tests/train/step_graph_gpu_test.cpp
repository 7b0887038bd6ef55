#include <ATen/Context.h>

#include "models/entries.h"
#include "models/model.h"
#include "src/train/peak_memory.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/train/two_epochs.h"

namespace settrain {
namespace {

using namespace test;

Batch random_batch(int64_t step, int64_t count) {
  at::manual_seed(static_cast<uint64_t>(step));
  Batch batch;
  batch.images = at::randn({count, 3, 32, 32});
  batch.labels = at::randint(5, {count}, at::kLong);
  batch.sample_ids = at::arange(count);
  return batch;
}

StepPlan one_batch(double divisor) {
  return {.divisor = divisor, .own = {{0, 0}}};
}

TEST_CASE("a captured step replays to the bits of the step itself", "[gpu][capture]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::globalContext().setDeterministicCuDNN(true);
  for (const char* loss : {"cross_entropy", "noised_topk", "smoothed_topk_hinge"}) {
    for (const bool adamw : {false, true}) {
      for (const bool bf16 : {false, true}) {
        CAPTURE(loss, adamw, bf16);
        const ComputePolicy policy{.device = at::kCUDA, .bf16 = bf16};
        int captures = 0;
        const Capture cuda = cuda_graph_capture(at::kCUDA);
        const Capture counted = [&](const std::function<void()>& operations) {
          std::function<void()> replay = cuda(operations);
          ++captures;
          return replay;
        };
        const Trained plain = train_two_epochs(loss, {}, policy, adamw),
                      replayed = train_two_epochs(loss, counted, policy, adamw);
        CHECK(captures == 2);
        CHECK(replayed.sum.loss_sum == plain.sum.loss_sum);
        CHECK(replayed.sum.measured == plain.sum.measured);
        REQUIRE(replayed.state.size() == plain.state.size());
        for (size_t i = 0; i < plain.state.size(); ++i) CHECK(replayed.state[i].equal(plain.state[i]));
      }
    }
  }
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_CASE("after a capture that CUDA refused, steps run as they are, with flat memory and random numbers",
          "[gpu][capture]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const InputStream to_device(at::kCUDA);
  StepGraph graph(cuda_graph_capture(at::kCUDA), [](const StepInputs& inputs) {
    const at::Tensor sum = inputs.parts[0].images.sum();
    return at::full({1}, sum.item<double>(), sum.options());  // reads from the device
  });
  uint64_t before = 0;
  for (int64_t i = 0; i < 60; ++i) {
    const Batch batch = random_batch(i, 256);
    CHECK(graph(to_device({batch}, {.step = i}, one_batch(1)), 0).item<double>() ==
          Approx(batch.images.sum().item<double>()).margin(1e-2));
    at::empty({1000}, at::TensorOptions(at::kCUDA).dtype(at::kFloat)).bernoulli_(0.5);
    const uint64_t free = available_memory(at::Device(at::kCUDA, 0));
    if (i == 20) before = free;
    if (i > 20) CHECK(free + (uint64_t{8} << 20) >= before);
  }
}

TEST_CASE("a loss that is not finite stops the replayed steps and is reported with its samples", "[gpu][capture]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const ComputePolicy policy{at::kCUDA};
  at::manual_seed(5);
  const auto made = make_small_resnet(8, 8, {}, {5, 3, 32, 32});
  Model& model = *made;
  model.to(at::kCUDA);
  auto loss = make_loss("cross_entropy");
  const auto optimizer = make_optimizer(model);
  ProcessGroup alone;
  TrainStep step(model, *loss, *optimizer, policy, alone, {.seed = 3, .capture = cuda_graph_capture(at::kCUDA)});
  for (int64_t i = 0; i < 6; ++i) step.launch({random_batch(i, 16)}, {i, 0.1, 0, 1}).result();
  const at::Tensor before = model.parameters()[0].detach().clone();
  Batch bad = random_batch(6, 16);
  bad.images.fill_(std::numeric_limits<float>::quiet_NaN());
  const LaunchedStep failed = step.launch({bad}, {6, 0.1, 0, 1}),
                     next = step.launch({random_batch(7, 16)}, {7, 0.1, 0, 1});
  CHECK_THROWS_WITH(failed.result(), Catch::Contains("at step 6") && Catch::Contains("16 of the batch's 16 samples"));
  CHECK(model.parameters()[0].equal(before));
}

TEST_CASE("what follows a copy finds all of it", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const InputStream to_device(at::kCUDA);
  // So large that a kernel which did not wait would read memory that is not written yet.
  const at::Tensor images = at::ones({64, 3, 512, 512}, at::TensorOptions(at::kFloat).pinned_memory(true));
  for (int64_t i = 0; i < 5; ++i) {
    Batch batch = random_batch(i, 64);
    batch.images = images;
    const StepInputs inputs = to_device({batch}, {.step = i, .lr = 0.5}, one_batch(64));
    CHECK(inputs.parts[0].images.select(0, 63).sum(at::kDouble).item<double>() == 3 * 512 * 512);
    CHECK(inputs.step().item<int64_t>() == i);
    inputs.parts[0].images.zero_();
  }
}

}  // namespace
}  // namespace settrain
