#include "src/train/step_graph.h"

#include <c10/util/Exception.h>

#include <catch2/catch.hpp>

#include "models/convnext.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using namespace test;

// Captures by keeping the operations, which a capture does not run: what is replayed must follow from the inputs that
// they were captured with.
struct FakeCapture {
  int captures = 0, replays = 0;

  Capture capture() {
    return [this](const std::function<void()>& operations) -> std::function<void()> {
      ++captures;
      return [this, operations] {
        ++replays;
        operations();
      };
    };
  }
};

StepInputs inputs_of(double value, int64_t samples = 4) {
  StepPart part{at::full({samples, 1}, value, at::kDouble), at::arange(samples, at::kLong), {}, {}, 0};
  return {{part}, at::tensor({0.1, 4.0, 7.0}, at::kDouble)};
}

TEST_CASE("steps are captured after the first three, anew in every epoch, and replayed on their own inputs", "[fast]") {
  FakeCapture fake;
  StepGraph graph(fake.capture(), [](const StepInputs& inputs) { return inputs.parts[0].images.sum() + inputs.lr(); });
  for (int64_t step = 0; step < 10; ++step) {
    const auto value = static_cast<double>(step);
    CHECK(graph(inputs_of(value), step / 5).item<double>() == 4 * value + 0.1);
  }
  CHECK(fake.captures == 2);
  CHECK(fake.replays == 2 + 5);
}

TEST_CASE("a step of another shape, or with label sets, runs as it is", "[fast]") {
  FakeCapture fake;
  StepGraph graph(fake.capture(), [](const StepInputs& inputs) { return inputs.parts[0].images.sum(0); });
  for (int i = 0; i < 5; ++i) graph(inputs_of(1), 0);
  CHECK(fake.replays == 2);
  CHECK(graph(inputs_of(2, 3), 0).item<double>() == 6);
  StepInputs with_sets = inputs_of(3);
  with_sets.parts[0].label_sets = {at::arange(5, at::kLong), at::arange(4, at::kLong)};
  CHECK(graph(with_sets, 0).item<double>() == 12);
  CHECK(fake.replays == 2);
  CHECK(fake.captures == 1);
}

TEST_CASE("where the capture fails, steps run as they are from then on", "[fast]") {
  int attempts = 0;
  const Capture refuses = [&](const std::function<void()>&) -> std::function<void()> {
    ++attempts;
    TORCH_CHECK(false, "operation not permitted when stream is capturing");
  };
  StepGraph graph(refuses, [](const StepInputs& inputs) { return inputs.parts[0].images.sum(0); });
  for (int i = 0; i < 8; ++i) CHECK(graph(inputs_of(i), 0).item<double>() == 4 * i);
  CHECK(attempts == 1);
}

// What a run of steps in captured form must reproduce: weights, numbers, dropout and noise.
struct Trained {
  std::vector<at::Tensor> weights;
  StepResult sum;
};

Trained train(const std::string& loss_name, const Capture& capture) {
  at::manual_seed(5);
  ConvNext model(ConvNextShape{{1, 1, 1, 1}, {4, 4, 4, 4}}, 0.5, ModelOptions{}, ModelContext{5, 3, 32, 32});
  for (const auto& item : model.named_parameters()) {
    if (item.key().ends_with("layer_scale")) item.value().data().fill_(1);
  }
  auto loss = make_loss(loss_name, {"loss.class_weights=list", "loss.class_weight_list=[0.5, 1, 2, 1, 0.5]",
                                    "loss.class_weights_from_epoch=1", "loss.class_weight_mean=weights"});
  Sgd optimizer = make_optimizer(model);
  const Computation computation;
  TrainStep step(model, *loss, optimizer, computation,
                 {.seed = 3, .clip_norm = 0.1, .metrics = nullptr, .mix = nullptr, .capture = capture});
  Trained trained;
  for (int64_t i = 0; i < 12; ++i) {
    // The last step of an epoch has a smaller second batch.
    std::vector<Batch> batches{samples(0, 4), samples(4, i % 6 == 5 ? 2 : 4)};
    for (Batch& batch : batches) {
      at::manual_seed(static_cast<uint64_t>(i));
      batch.images = at::randn({batch.size(), 3, 32, 32});
    }
    trained.sum += step.launch(batches, {i, 0.1 / static_cast<double>(i + 1), i / 6}).result();
  }
  for (const at::Tensor& parameter : model.parameters()) trained.weights.push_back(parameter.detach().clone());
  return trained;
}

TEST_CASE("replayed steps have the numbers of steps that run as they are", "[fast]") {
  const std::string loss = GENERATE("cross_entropy", "noised_topk");
  FakeCapture fake;
  const Trained plain = train(loss, {}), replayed = train(loss, fake.capture());
  CHECK(fake.captures == 2);
  CHECK(fake.replays == 2 + 5);
  CHECK(replayed.sum.loss_sum == plain.sum.loss_sum);
  CHECK(replayed.sum.correct == plain.sum.correct);
  for (size_t i = 0; i < plain.weights.size(); ++i) CHECK(replayed.weights[i].equal(plain.weights[i]));
}

}  // namespace
}  // namespace settrain
