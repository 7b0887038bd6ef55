#include <ATen/Context.h>

#include <catch2/catch.hpp>

#include "models/named_tensors.h"
#include "models/small_resnet.h"
#include "src/optim/adamw.h"
#include "tests/support/skip.h"
#include "tests/train/linear_task.h"

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

// The state after two epochs of eight steps, of which the last of each is smaller, and what was measured.
struct TrainedOnGpu {
  std::vector<at::Tensor> state;
  double loss_sum = 0;
};

TrainedOnGpu train_on_gpu(const std::string& loss_name, bool adamw, const Capture& capture) {
  const Computation computation{at::kCUDA};
  at::manual_seed(5);
  SmallResNet model(20, 16, ModelOptions{}, ModelContext{5, 3, 32, 32});
  model.to(at::kCUDA);
  auto loss = make_loss(loss_name);
  TrainedParameters parameters;
  for (const auto& item : model.named_parameters()) parameters.push_back({item.key(), item.value()});
  std::unique_ptr<Optimizer> optimizer;
  if (adamw) {
    optimizer = std::make_unique<AdamW>(parameters, AdamWOptions{0.1, 0.9, 0.999, 1e-8, 0.01});
  } else {
    optimizer = std::make_unique<Sgd>(parameters, SgdOptions{0.1, 0.9, 1e-3, true});
  }
  TrainStep step(model, *loss, *optimizer, computation, {.seed = 3, .clip_norm = 1, .capture = capture});
  TrainedOnGpu trained;
  for (int64_t i = 0; i < 16; ++i) {
    const std::vector<Batch> batches{random_batch(i, 32), random_batch(100 + i, i % 8 == 7 ? 7 : 32)};
    trained.loss_sum += step.launch(batches, {i, 0.1 / static_cast<double>(i + 1), i / 8}).result().loss_sum;
  }
  for (const auto& [name, tensor] : state_dict(model)) trained.state.push_back(tensor.cpu());
  for (const auto& [name, tensor] : optimizer->state()) trained.state.push_back(tensor.cpu());
  return trained;
}

TEST_CASE("a captured step replays to the bits of the step itself", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::globalContext().setDeterministicCuDNN(true);
  for (const char* loss : {"cross_entropy", "noised_topk", "smoothed_topk_hinge"}) {
    for (const bool adamw : {false, true}) {
      CAPTURE(loss, adamw);
      int captures = 0;
      const Capture cuda = cuda_graph_capture(at::kCUDA);
      const Capture counted = [&](const std::function<void()>& operations) {
        ++captures;
        return cuda(operations);
      };
      const TrainedOnGpu plain = train_on_gpu(loss, adamw, {}), replayed = train_on_gpu(loss, adamw, counted);
      CHECK(captures == 2);
      CHECK(replayed.loss_sum == plain.loss_sum);
      REQUIRE(replayed.state.size() == plain.state.size());
      for (size_t i = 0; i < plain.state.size(); ++i) CHECK(replayed.state[i].equal(plain.state[i]));
    }
  }
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_CASE("a loss that is not finite stops the replayed steps and is told with its samples", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const Computation computation{at::kCUDA};
  at::manual_seed(5);
  SmallResNet model(8, 8, ModelOptions{}, ModelContext{5, 3, 32, 32});
  model.to(at::kCUDA);
  auto loss = make_loss("cross_entropy");
  Sgd optimizer = make_optimizer(model);
  TrainStep step(model, *loss, optimizer, computation, {.seed = 3, .capture = cuda_graph_capture(at::kCUDA)});
  for (int64_t i = 0; i < 6; ++i) step.launch({random_batch(i, 16)}, {i, 0.1}).result();
  const at::Tensor before = model.parameters()[0].detach().clone();
  Batch bad = random_batch(6, 16);
  bad.images.fill_(std::numeric_limits<float>::quiet_NaN());
  const LaunchedStep failed = step.launch({bad}, {6, 0.1}), next = step.launch({random_batch(7, 16)}, {7, 0.1});
  CHECK_THROWS_WITH(failed.result(), Catch::Contains("at step 6") && Catch::Contains("16 of the batch's 16 samples"));
  CHECK(model.parameters()[0].equal(before));
}

TEST_CASE("batches reach the device while it computes, and in order", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const InputStream to_device(at::kCUDA);
  at::Tensor busy = at::randn({2048, 2048}, at::kCUDA);
  for (int64_t i = 0; i < 20; ++i) {
    for (int work = 0; work < 5; ++work) busy = busy.matmul(busy).tanh();
    Batch batch = random_batch(i, 64);
    batch.images = batch.images.pin_memory();
    const StepInputs inputs = to_device({batch}, {.step = i, .lr = 0.5}, 64);
    CHECK(inputs.parts[0].images.cpu().equal(batch.images));
    CHECK(inputs.step().item<int64_t>() == i);
  }
}

}  // namespace
}  // namespace settrain
