#include "src/train/train_step.h"

#include <ATen/ATen.h>

#include "models/entries.h"
#include "models/model.h"
#include "src/train/run_options.h"
#include "tests/support/catch2.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using namespace test;
using Catch::Contains;

at::Tensor weight_after(const std::vector<Batch>& batches, const std::string& loss_name) {
  auto model = fresh_model();
  auto loss = make_loss(loss_name);
  const auto optimizer = make_optimizer(*model);
  for (int64_t step = 0; step < 2; ++step) {
    const StepResult result = train_step(*model, *loss, *optimizer, batches, ComputePolicy{}, {1, step, 0.1, 0});
    CHECK(result.count == 8);
    CHECK(result.loss_sum > 0);
  }
  return model->parameters()[0].detach();
}

TEST_CASE("a step with stochastic depth draws the same images after a resume") {
  const auto fresh = [] {
    at::manual_seed(5);
    auto model = make_convnext({{1, 1, 1, 1}, {4, 4, 4, 4}}, 0.5, {}, {5, 3, 32, 32});
    for (const auto& item : model->named_parameters()) {
      if (item.key().ends_with("layer_scale")) item.value().data().fill_(1);
    }
    return model;
  };
  Batch batch = samples(0, 8);
  batch.images = at::randn({8, 3, 32, 32});
  const auto losses = [&](uint64_t draws_before, int64_t step) {
    const auto model = fresh();
    auto loss = make_loss("cross_entropy");
    const auto optimizer = make_optimizer(*model);
    at::manual_seed(draws_before);
    return train_step(*model, *loss, *optimizer, {batch}, ComputePolicy{}, {1, step, 0.1, 0}).loss_sum;
  };
  CHECK(losses(1, 3) == losses(2, 3));
  CHECK(losses(1, 3) != losses(1, 4));
}

TEST_CASE("uneven accumulated batches make the step of one batch, noise included") {
  const std::string loss = GENERATE("cross_entropy", "noised_topk");
  const at::Tensor whole = weight_after({samples(0, 8)}, loss);
  const at::Tensor parts = weight_after({samples(0, 5), samples(5, 3)}, loss);
  CHECK((whole - parts).abs().max().item<double>() < 1e-14);
  const at::Tensor untrained_task = fresh_model()->parameters()[0].detach();
  CHECK((whole - untrained_task).abs().max().item<double>() > 1e-4);
}

TEST_CASE("a batch without samples changes nothing") {
  const Batch empty;
  CHECK(weight_after({samples(0, 5), empty, samples(5, 3)}, "cross_entropy")
            .equal(weight_after({samples(0, 5), samples(5, 3)}, "cross_entropy")));
  auto model = fresh_model();
  const auto optimizer = make_optimizer(*model);
  const at::Tensor before = model->parameters()[0].detach().clone();
  CHECK(train_step(*model, *make_loss("cross_entropy"), *optimizer, {empty}, ComputePolicy{}, {1, 0, 0.1, 0}).count ==
        0);
  CHECK(model->parameters()[0].equal(before));
}

TEST_CASE("what a step measures adds up over its batches, and changes no bit") {
  const std::string loss_name = GENERATE("cross_entropy", "noised_topk");
  TrainOptions options;
  options.top_k = {2, 5};
  options.gradient_nonzeros = true;
  const StepMetrics metrics(options);
  const auto steps = [&](const std::vector<Batch>& batches, const StepMetrics& measured, at::Tensor& weight) {
    auto model = fresh_model();
    auto loss = make_loss(loss_name);
    const auto optimizer = make_optimizer(*model);
    StepResult sum;
    for (int64_t step = 0; step < 3; ++step) {
      OneStep settings{1, step, 0.1, 0};
      settings.metrics = measured;
      sum += train_step(*model, *loss, *optimizer, batches, ComputePolicy{}, settings);
    }
    weight = model->parameters()[0].detach();
    return sum;
  };
  at::Tensor measured, plain, in_parts;
  const StepResult whole = steps({samples(0, 8)}, metrics, measured);
  CHECK(steps({samples(0, 8)}, {}, plain).measured.empty());
  CHECK(measured.equal(plain));
  CHECK(steps({samples(0, 5), samples(5, 3)}, metrics, in_parts).measured == whole.measured);

  REQUIRE(whole.measured.size() == 3);
  CHECK(whole.measured[0] >= static_cast<double>(whole.correct));
  CHECK(whole.measured[0] < 24);
  CHECK(whole.measured[1] == 24);  // all of the five classes
  if (loss_name == "cross_entropy") CHECK(whole.measured[2] == 3 * 8 * 5);
  if (loss_name == "noised_topk") CHECK(whole.measured[2] <= 3 * 8 * 5);
}

TEST_CASE("clipping bounds the update") {
  auto model = fresh_model();
  auto loss = make_loss("cross_entropy");
  const auto optimizer = make_plain_optimizer(*model);
  const at::Tensor before = model->parameters()[0].detach().clone();
  train_step(*model, *loss, *optimizer, {samples(0, 8)}, ComputePolicy{}, {1, 0, /*lr=*/1.0, /*clip_norm=*/1e-3});
  CHECK((model->parameters()[0].detach() - before).norm().item<double>() == Approx(1e-3).epsilon(1e-6));
}

TEST_CASE("a loss that is not finite names step, samples and tensor, and leaves the weights alone") {
  auto model = fresh_model();
  auto loss = make_loss("cross_entropy");
  const auto optimizer = make_optimizer(*model);
  const at::Tensor before = model->parameters()[0].detach().clone();
  Batch batch = samples(0, 8);
  batch.images = batch.images.clone();
  batch.images[3][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(train_step(*model, *loss, *optimizer, {batch}, ComputePolicy{}, {1, 42, 0.1, 0}),
                    Contains("at step 42") && Contains("1 of the batch's 8 samples (ids 103)") &&
                        Contains("learning rate 0.1") && Contains("is the features"));
  CHECK(at::equal(model->parameters()[0].detach(), before));

  model->parameters()[1].detach()[2] = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(train_step(*model, *loss, *optimizer, {samples(0, 8)}, ComputePolicy{}, {1, 0, 0.1, 0}),
                    Contains("is model.fc.bias"));
}

TEST_CASE("a loss that is not finite is reported when the next step is under way, which changes nothing either") {
  const std::string name = GENERATE("cross_entropy", "role");
  auto model = fresh_model();
  auto loss = make_loss(name);
  const auto optimizer = make_optimizer(*model);
  const ComputePolicy policy;
  ProcessGroup alone;
  TrainStep step(*model, *loss, *optimizer, policy, alone, {.seed = 1});
  step.launch({samples(0, 8)}, {0, 0.1, 0, 1}).result();
  const auto tensors = [&] {
    std::vector<at::Tensor> all{model->parameters()[0].detach().clone(), optimizer->state()[0].second.clone()};
    for (const auto& [key, tensor] : loss->state()) all.push_back(tensor.clone());
    return all;
  };
  const std::vector<at::Tensor> before = tensors();

  Batch bad = samples(0, 8);
  bad.images = bad.images.clone();
  bad.images[6].fill_(std::numeric_limits<float>::infinity());
  const LaunchedStep failed = step.launch({samples(0, 4), samples(4, 4), bad}, {1, 0.2, 0, 3});
  const LaunchedStep next = step.launch({samples(0, 8)}, {2, 0.3, 0, 1});
  // role's regulariser looks over the batch.
  const std::string samples_named =
      name == "role" ? "8 of the batch's 8 samples" : "1 of the batch's 8 samples (ids 106)";
  CHECK_THROWS_WITH(failed.result(), Contains("at step 1") && Contains(samples_named) &&
                                         Contains("learning rate 0.2") && Contains("is the features"));
  CHECK(next.result().count == 8);
  const std::vector<at::Tensor> after = tensors();
  for (size_t i = 0; i < before.size(); ++i) CHECK(after[i].equal(before[i]));
}

TEST_CASE("a loss' own tensors move once a step, by the gradients of all its batches") {
  const auto theta_after = [](const std::vector<Batch>& batches, double theta_lr) {
    auto model = fresh_model();
    auto loss = make_loss("role", {"loss.theta_lr=" + std::to_string(theta_lr)});
    const auto optimizer = make_optimizer(*model);
    train_step(*model, *loss, *optimizer, batches, ComputePolicy{}, {1, 0, 0.1, 0});
    return loss->state().at(0).second.clone();
  };
  const at::Tensor before = theta_after({samples(0, 8)}, 0), whole = theta_after({samples(0, 8)}, 400);
  CHECK(((whole - before).abs().amax(1) > 1e-3).all().item<bool>());
  // lambda is 0: nothing couples the samples.
  CHECK((whole - theta_after({samples(0, 5), samples(5, 3)}, 400)).abs().max().item<double>() < 1e-6);
  const at::Tensor three = theta_after({samples(0, 3)}, 400);
  CHECK(at::equal(three.slice(0, 3), before.slice(0, 3)));
}

TEST_CASE("a mean over weights takes larger steps where the weights are small") {
  // Labels are 0 1 2 3 4 0 1 2: weights of 4.25 in all.
  const std::vector<std::string> weights{"loss.class_weights=list", "loss.class_weight_list=[0.5, 0.25, 1, 0.25, 0.5]"};
  std::vector<std::string> of_weights = weights;
  of_weights.emplace_back("loss.class_weight_mean=weights");
  const auto update = [](const std::vector<Batch>& batches, const std::vector<std::string>& settings,
                         int64_t epoch = 0) {
    auto model = fresh_model();
    auto loss = make_loss("cross_entropy", settings);
    const auto optimizer = make_plain_optimizer(*model);
    const at::Tensor before = model->parameters()[0].detach().clone();
    train_step(*model, *loss, *optimizer, batches, ComputePolicy{}, {1, 0, 1.0, 0, epoch});
    return model->parameters()[0].detach() - before;
  };
  const at::Tensor over_samples = update({samples(0, 8)}, weights), over_weights = update({samples(0, 8)}, of_weights);
  CHECK((over_samples * 8 - over_weights * 4.25).abs().max().item<double>() < 1e-14);
  CHECK(over_samples.abs().max().item<double>() > 1e-3);
  CHECK((update({samples(0, 5), samples(5, 3)}, of_weights) - over_weights).abs().max().item<double>() < 1e-14);

  // Before deferred weights begin, steps are those without weights.
  std::vector<std::string> deferred = of_weights;
  deferred.emplace_back("loss.class_weights_from_epoch=1");
  CHECK(update({samples(0, 8)}, deferred, 0).equal(update({samples(0, 8)}, {}, 0)));
  CHECK(update({samples(0, 8)}, deferred, 1).equal(over_weights));
}

TEST_CASE("class weights know the epoch, and losses of sets the sets") {
  const auto loss_of = [](const std::string& name, const std::vector<std::string>& settings, const Batch& batch,
                          int64_t epoch) {
    auto model = fresh_model();
    auto loss = make_loss(name, settings);
    const auto optimizer = make_optimizer(*model);
    return train_step(*model, *loss, *optimizer, {batch}, ComputePolicy{}, {1, 0, 0.1, 0, epoch}).loss_sum;
  };
  const std::vector<std::string> doubled{"loss.class_weights=list", "loss.class_weight_list=[2, 2, 2, 2, 2]",
                                         "loss.class_weights_from_epoch=2"};
  const double plain = loss_of("cross_entropy", {}, samples(0, 8), 0);
  CHECK(loss_of("cross_entropy", doubled, samples(0, 8), 1) == Approx(plain));
  CHECK(loss_of("cross_entropy", doubled, samples(0, 8), 2) == Approx(2 * plain));

  Batch with_sets = samples(0, 8);
  with_sets.set_offsets = at::arange(9, at::kLong);
  with_sets.set_classes = with_sets.labels;
  const double single = loss_of("sparse_top", {}, samples(0, 8), 0);
  CHECK(loss_of("sparse_top", {}, with_sets, 0) == single);
  with_sets.set_classes = (with_sets.labels + 1).remainder(5);
  CHECK(loss_of("sparse_top", {}, with_sets, 0) != single);
}

}  // namespace
}  // namespace settrain
