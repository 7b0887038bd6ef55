#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using namespace test;

// Threads stand in for processes; what they train draws nothing from ATen's generator, which is one for all of them.
void in_two_processes(const std::function<void(ProcessGroup&)>& work) {
  const auto port = static_cast<uint16_t>(41000 + getpid() % 20000);
  std::vector<std::string> errors(2);
  const auto process = [&](int64_t rank) {
    try {
      ProcessGroup group({"settrain", rank, 2, rank, 2, "127.0.0.1", port, false}, {"gloo", 20, 25}, at::kCPU);
      work(group);
    } catch (const std::exception& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  };
  std::thread other(process, 1);
  process(0);
  other.join();
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("samples of another process that have no finite loss are told in every process, and nothing moves",
          "[fast]") {
  std::vector<std::string> told(2);
  in_two_processes([&](ProcessGroup& group) {
    auto model = fresh_model();
    auto loss = make_loss("cross_entropy");
    Sgd optimizer = make_optimizer(*model);
    const Computation computation;
    TrainStep step(*model, *loss, optimizer, computation, group, {.seed = 1});
    const at::Tensor before = model->parameters()[0].detach().clone();
    Batch batch = samples(group.is_first() ? 0 : 4, 4);
    if (!group.is_first()) {
      batch.images = batch.images.clone();
      batch.images[2].fill_(std::numeric_limits<float>::infinity());
    }
    const LaunchedStep launched = step.launch({batch}, {7, 0.1, 0, 2});
    try {
      launched.result();
    } catch (const NumericalError& error) {
      told[static_cast<size_t>(group.rank())] = error.what();
    }
    if (!model->parameters()[0].detach().equal(before)) throw Error("the parameters moved");
  });
  CHECK(told[0] == told[1]);
  CHECK_THAT(told[0], Catch::StartsWith("process 1: ") && Catch::Contains("at step 7") && Catch::Contains("(ids 106)"));
}

TEST_CASE("a step without any batch of one process is that of the other alone", "[fast]") {
  auto alone = fresh_model();
  auto alone_loss = make_loss("cross_entropy");
  Sgd alone_optimizer = make_optimizer(*alone);
  const StepResult expected =
      train_step(*alone, *alone_loss, alone_optimizer, {samples(0, 5)}, Computation{}, {1, 3, 0.1, 0});
  in_two_processes([&](ProcessGroup& group) {
    auto model = fresh_model();
    auto loss = make_loss("cross_entropy");
    Sgd optimizer = make_optimizer(*model);
    const Computation computation;
    TrainStep step(*model, *loss, optimizer, computation, group, {.seed = 1});
    const std::vector<Batch> batches = group.is_first() ? std::vector<Batch>{samples(0, 5)} : std::vector<Batch>{};
    const StepResult result = step.launch(batches, {3, 0.1, 0, 1}).result();
    if (result.loss_sum != expected.loss_sum || result.count != 5) throw Error("another loss");
    if (!model->parameters()[0].equal(alone->parameters()[0])) throw Error("other parameters");
  });
}

}  // namespace
}  // namespace settrain
