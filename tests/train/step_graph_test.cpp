#include "src/train/step_graph.h"

#include <c10/util/Exception.h>

#include "tests/support/catch2.h"
#include "tests/train/two_epochs.h"

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
  MicroBatch part{.images = at::full({samples, 1}, value, at::kDouble), .loss_input = {}};
  part.loss_input.labels = at::arange(samples, at::kLong);
  return {.parts = {part}, .numbers = at::tensor({0.1, 4.0, 7.0}, at::kDouble)};
}

TEST_CASE("steps are captured after the first three, anew in every epoch, and replayed on their own inputs") {
  FakeCapture fake;
  StepGraph graph(fake.capture(), [](const StepInputs& inputs) { return inputs.parts[0].images.sum() + inputs.lr(); });
  for (int64_t step = 0; step < 10; ++step) {
    const auto value = static_cast<double>(step);
    CHECK(graph(inputs_of(value), step / 5).item<double>() == 4 * value + 0.1);
  }
  CHECK(fake.captures == 2);
  CHECK(fake.replays == 2 + 4);
}

TEST_CASE("a step of another shape, or with label sets, runs as it is") {
  FakeCapture fake;
  StepGraph graph(fake.capture(), [](const StepInputs& inputs) { return inputs.parts[0].images.sum(0); });
  for (int i = 0; i < 5; ++i) graph(inputs_of(1), 0);
  CHECK(fake.replays == 2);
  CHECK(graph(inputs_of(2, 3), 0).item<double>() == 6);
  StepInputs with_sets = inputs_of(3);
  with_sets.parts[0].loss_input.label_sets = {at::arange(5, at::kLong), at::arange(4, at::kLong)};
  CHECK(graph(with_sets, 0).item<double>() == 12);
  CHECK(fake.replays == 2);
  CHECK(fake.captures == 1);
}

TEST_CASE("where the capture fails, steps run as they are from then on") {
  int attempts = 0;
  const Capture refuses = [&](const std::function<void()>&) -> std::function<void()> {
    ++attempts;
    TORCH_CHECK(false, "operation not permitted when stream is capturing");
  };
  StepGraph graph(refuses, [](const StepInputs& inputs) { return inputs.parts[0].images.sum(0); });
  for (int i = 0; i < 8; ++i) CHECK(graph(inputs_of(i), 0).item<double>() == 4 * i);
  CHECK(attempts == 1);
}

TEST_CASE("a capture that fails throws the first error, whatever its end and the clean-up throw") {
  const auto fail = [](const char* message) { return [message] { throw std::runtime_error(message); }; };
  const auto nothing = [] {};
  bool cleaned_up = false;
  const auto clean_up = [&] { cleaned_up = true; };
  CHECK_THROWS_WITH(close_after(fail("the operations'"), fail("the end's"), {fail("the clean-up's")}),
                    "the operations'");
  CHECK_THROWS_WITH(close_after(fail("the operations'"), nothing, {clean_up}), "the operations'");
  CHECK_NOTHROW(close_after(nothing, nothing, {clean_up}));
  CHECK_FALSE(cleaned_up);
  CHECK_THROWS_WITH(close_after(nothing, fail("no memory to instantiate"), {fail("not recording"), clean_up}),
                    "no memory to instantiate");
  CHECK(cleaned_up);
}

TEST_CASE("a batch of another size before the capture does not stand for the others") {
  FakeCapture fake;
  StepGraph graph(fake.capture(), [](const StepInputs& inputs) { return inputs.parts[0].images.sum(0); });
  for (int i = 0; i < 3; ++i) graph(inputs_of(1), 0);
  graph(inputs_of(1, 3), 0);
  CHECK(fake.captures == 0);
  for (int i = 0; i < 4; ++i) CHECK(graph(inputs_of(i), 0).item<double>() == 4 * i);
  CHECK(fake.captures == 1);
  CHECK(fake.replays == 3);
  graph.drop();
  graph(inputs_of(1), 0);
  CHECK(fake.replays == 3);
}

TEST_CASE("a smaller step without memory beside the captured one drops that one and runs again, to the same bits") {
  FakeCapture fake;
  int passes = 0;
  const auto fails_at_first = [&](int64_t images) {
    if (images == 6) TORCH_CHECK_WITH(OutOfMemoryError, ++passes % 2 == 0, "CUDA out of memory");
  };
  const Trained plain = train_two_epochs("cross_entropy", {}),
                again = train_two_epochs("cross_entropy", fake.capture(), {}, false, fails_at_first);
  CHECK(passes == 4);
  CHECK(fake.captures == 2);
  CHECK(again.sum.loss_sum == plain.sum.loss_sum);
  for (size_t i = 0; i < plain.state.size(); ++i) CHECK(again.state[i].equal(plain.state[i]));

  passes = 0;
  const auto always_fails = [&](int64_t images) {
    if (images == 6) TORCH_CHECK_WITH(OutOfMemoryError, ++passes == 0, "CUDA out of memory");
  };
  CHECK_THROWS_AS(train_two_epochs("cross_entropy", fake.capture(), {}, false, always_fails), c10::OutOfMemoryError);
  CHECK(passes == 2);
}

// An optimizer whose update of that number fails, after the step has begun to change the model.
class FailingOptimizer : public Optimizer {
 public:
  FailingOptimizer(const TrainedParameters& parameters, int fails_at)
      : Optimizer(parameters), inner_(make_sgd(parameters)), fails_at_(fails_at) {}

  void step(const at::Tensor& lr, const std::optional<at::Tensor>& stop) override {
    TORCH_CHECK_WITH(OutOfMemoryError, ++updates_ != fails_at_, "CUDA out of memory");
    inner_->step(lr, stop);
  }

  Named state() const override { return inner_->state(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  int fails_at_, updates_ = 0;
};

TEST_CASE("a step without memory is not run again once its update has begun") {
  FakeCapture fake;
  int passes = 0;
  ToldConvNext model([&](int64_t images) { passes += images == 6; }, ModelOptions{}, ModelContext{5, 3, 32, 32});
  const auto loss = make_loss("cross_entropy");
  FailingOptimizer optimizer(parameters_of(model), /*fails_at=*/6);
  ProcessGroup alone;
  const ComputePolicy policy;
  TrainStep step(model, *loss, optimizer, policy, alone, {.seed = 3, .capture = fake.capture()});
  const auto launch = [&](int64_t i) {
    std::vector<Batch> batches{samples(0, i == 5 ? 6 : 8)};
    batches[0].images = at::ones({batches[0].size(), 3, 32, 32});
    step.launch(batches, {i, 0.1, 0, 1});
  };
  for (int64_t i = 0; i < 5; ++i) launch(i);
  CHECK_THROWS_AS(launch(5), c10::OutOfMemoryError);
  CHECK(passes == 1);
}

TEST_CASE("a step without memory before anything of it ran is run again, whatever the step before did") {
  int replays = 0;
  const Capture capture = [&](const std::function<void()>& operations) -> std::function<void()> {
    return [&replays, operations] {
      TORCH_CHECK_WITH(OutOfMemoryError, ++replays != 2, "CUDA out of memory");
      operations();
    };
  };
  const Trained plain = train_two_epochs("cross_entropy", {}), again = train_two_epochs("cross_entropy", capture);
  CHECK(replays > 2);
  CHECK(again.sum.loss_sum == plain.sum.loss_sum);
  for (size_t i = 0; i < plain.state.size(); ++i) CHECK(again.state[i].equal(plain.state[i]));
}

TEST_CASE("replayed steps have the numbers of steps that run as they are") {
  const std::string loss = GENERATE("cross_entropy", "noised_topk");
  FakeCapture fake;
  const Trained plain = train_two_epochs(loss, {}), replayed = train_two_epochs(loss, fake.capture());
  CHECK(fake.captures == 2);
  CHECK(fake.replays == 2 + 4);
  CHECK(replayed.sum.loss_sum == plain.sum.loss_sum);
  CHECK(replayed.sum.correct == plain.sum.correct);
  CHECK(replayed.sum.measured == plain.sum.measured);
  for (size_t i = 0; i < plain.state.size(); ++i) CHECK(replayed.state[i].equal(plain.state[i]));
}

}  // namespace
}  // namespace settrain
