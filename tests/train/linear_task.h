// A task small enough to compute by heart: a linear classifier and eight samples.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "losses/make_loss.h"
#include "models/heads.h"
#include "models/model.h"
#include "src/config/load.h"
#include "src/train/train_step.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/optimizers.h"

namespace settrain::test {

// A linear classifier of the flattened image: no batch statistics, so that a batch and its parts give the same
// gradients.
class Linear : public Model {
 public:
  Linear() : head_(register_module("fc", std::make_shared<LinearHead>(12, 5))) { to(at::kDouble); }
  at::Tensor features(const at::Tensor& images) override { return images.flatten(1).to(at::kDouble); }
  ModelOutput classify(const at::Tensor& features) override {
    ModelOutput output;
    output.features = features;
    output.scores = head_->forward(output.features);
    return output;
  }

 private:
  std::shared_ptr<LinearHead> head_;
};

inline std::shared_ptr<Linear> fresh_model() {
  at::manual_seed(5);
  return std::make_shared<Linear>();
}

/// For five classes of three training images and the eight samples of samples().
inline std::unique_ptr<Loss> make_loss(const std::string& name, std::vector<std::string> settings = {}) {
  settings.push_back("loss.name=" + name);
  if (name == "noised_topk" || name == "role") settings.push_back("loss.k=2");
  return settrain::make_loss(builtin_losses(), config::load({{loss_section(builtin_losses())}, {}}, {}, settings),
                             {.num_classes = 5,
                              .class_counts = {3, 3, 3, 3, 3},
                              .train_ids = {100, 101, 102, 103, 104, 105, 106, 107},
                              .train_labels = {0, 1, 2, 3, 4, 0, 1, 2}});
}

inline TrainedParameters parameters_of(const Model& model) {
  TrainedParameters parameters;
  for (const auto& item : model.named_parameters()) parameters.push_back({item.key(), item.value()});
  return parameters;
}

inline std::unique_ptr<Optimizer> make_sgd(const TrainedParameters& parameters) {
  return optimizer_of("sgd", parameters, {"optimizer.weight_decay=1e-3"});
}

inline std::unique_ptr<Optimizer> make_optimizer(const Model& model) {
  return make_sgd(parameters_of(model));
}

/// Plain gradient descent of the model's first parameter.
inline std::unique_ptr<Optimizer> make_plain_optimizer(const Model& model) {
  return optimizer_of("sgd", {{"fc.weight", model.parameters()[0]}},
                      {"optimizer.momentum=0", "optimizer.nesterov=false", "optimizer.weight_decay=0"});
}

/// All that a single step depends on besides its batches.
struct OneStep {
  uint64_t seed;
  int64_t step;
  double lr, clip_norm;
  int64_t epoch = 0;
  StepMetrics metrics{};
  MixOptions mix{};
};

inline StepResult train_step(Model& model, Loss& loss, Optimizer& optimizer, const std::vector<Batch>& batches,
                             const ComputePolicy& policy, const OneStep& one) {
  ProcessGroup alone;
  TrainStep step(model, loss, optimizer, policy, alone, {one.seed, one.clip_norm, one.metrics, one.mix});
  return step.launch(batches, {one.step, one.lr, one.epoch, std::ssize(batches)}).result();
}

inline Batch samples(int64_t first, int64_t count) {
  at::manual_seed(9);
  const at::Tensor images = at::randn({8, 3, 2, 2});
  Batch batch;
  batch.images = images.slice(0, first, first + count);
  batch.sample_ids = at::arange(first, first + count) + 100;
  batch.labels = at::arange(first, first + count).remainder(5);
  return batch;
}

}  // namespace settrain::test
