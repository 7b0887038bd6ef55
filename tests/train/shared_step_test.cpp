#include <ATen/ATen.h>

#include "tests/support/catch2.h"
#include "tests/support/threads_as_processes.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using namespace test;

TEST_CASE("samples of another process that have no finite loss are reported in every process, and nothing moves") {
  const std::vector<std::shared_ptr<Linear>> models{fresh_model(), fresh_model()};
  std::vector<Batch> batches{samples(0, 4), samples(4, 4)};
  batches[1].images = batches[1].images.clone();
  batches[1].images[2].fill_(std::numeric_limits<float>::infinity());
  std::vector<std::string> told(2);
  in_processes(2, [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    Model& model = *models[rank];
    auto loss = make_loss("cross_entropy");
    const auto optimizer = make_optimizer(model);
    const ComputePolicy policy;
    TrainStep step(model, *loss, *optimizer, policy, group, {.seed = 1});
    const at::Tensor before = model.parameters()[0].detach().clone();
    const LaunchedStep launched = step.launch({batches[rank]}, {7, 0.1, 0, 2});
    try {
      launched.result();
    } catch (const AgreedError& error) {
      told[rank] = error.what();
    }
    if (!model.parameters()[0].detach().equal(before)) throw Error("the parameters moved");
  });
  CHECK(told[0] == told[1]);
  CHECK_THAT(told[0], Catch::StartsWith("process 1: ") && Catch::Contains("at step 7") && Catch::Contains("(ids 106)"));
}

TEST_CASE("a step without any batch of one process is that of the other alone") {
  auto alone = fresh_model();
  auto alone_loss = make_loss("cross_entropy");
  const auto alone_optimizer = make_optimizer(*alone);
  const StepResult expected =
      train_step(*alone, *alone_loss, *alone_optimizer, {samples(0, 5)}, ComputePolicy{}, {1, 3, 0.1, 0});
  const std::vector<std::shared_ptr<Linear>> models{fresh_model(), fresh_model()};
  const std::vector<std::vector<Batch>> batches{{samples(0, 5)}, {}};
  in_processes(2, [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    Model& model = *models[rank];
    auto loss = make_loss("cross_entropy");
    const auto optimizer = make_optimizer(model);
    const ComputePolicy policy;
    TrainStep step(model, *loss, *optimizer, policy, group, {.seed = 1});
    const StepResult result = step.launch(batches[rank], {3, 0.1, 0, 1}).result();
    if (result.loss_sum != expected.loss_sum || result.count != 5) throw Error("another loss");
    if (!model.parameters()[0].equal(alone->parameters()[0])) throw Error("other parameters");
  });
}

}  // namespace
}  // namespace settrain
