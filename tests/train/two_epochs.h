// A short training with all that steps can have: dropout, class weights from an epoch on, clipping, measured metrics,
// batches that are added up and an epoch's smaller last step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/entries.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "src/train/run_options.h"
#include "tests/train/linear_task.h"

namespace settrain::test {

/// The results that replayed steps must reproduce to the bit.
struct Trained {
  std::vector<at::Tensor> state;  // of the model and its optimizer, on the CPU
  StepResult sum;
};

/// A model that tells how many images went through it.
class ToldConvNext : public Model {
 public:
  ToldConvNext(const std::function<void(int64_t images)>& tell, const ModelOptions& options,
               const ModelContext& context)
      : net_(register_module("net", make_convnext({{1, 1, 1, 1}, {4, 4, 4, 4}}, 0.5, options, context))), tell_(tell) {}

  at::Tensor features(const at::Tensor& images) override { return net_->features(images); }
  ModelOutput classify(const at::Tensor& features) override {
    ModelOutput output = net_->classify(features);
    if (tell_) tell_(features.size(0));
    return output;
  }

 private:
  std::shared_ptr<Model> net_;
  std::function<void(int64_t images)> tell_;
};

/// `after_forward` is called with the number of images.
inline Trained train_two_epochs(const std::string& loss_name, const Capture& capture, const ComputePolicy& policy = {},
                                bool adamw = false, const std::function<void(int64_t images)>& after_forward = {}) {
  at::manual_seed(5);
  ToldConvNext model(after_forward, ModelOptions{}, ModelContext{5, 3, 32, 32});
  for (const auto& item : model.named_parameters()) {
    if (item.key().ends_with("layer_scale")) item.value().data().fill_(1);
  }
  model.to(policy.device);
  auto loss = make_loss(loss_name, {"loss.class_weights=list", "loss.class_weight_list=[0.5, 1, 2, 1, 0.5]",
                                    "loss.class_weights_from_epoch=1", "loss.class_weight_mean=weights"});
  const TrainedParameters parameters = parameters_of(model);
  const std::unique_ptr<Optimizer> optimizer =
      adamw ? optimizer_of("adamw", parameters, {"optimizer.lr=0.01"}) : make_sgd(parameters);
  TrainOptions measured;
  measured.top_k = {2};
  measured.gradient_nonzeros = true;
  ProcessGroup alone;
  TrainStep step(model, *loss, *optimizer, policy, alone,
                 {.seed = 3, .clip_norm = 0.1, .metrics = StepMetrics(measured), .mix = {}, .capture = capture});
  Trained trained;
  for (int64_t i = 0; i < 12; ++i) {
    std::vector<Batch> batches{samples(0, i % 6 == 5 ? 6 : 8)};
    for (Batch& batch : batches) {
      at::manual_seed(static_cast<uint64_t>(i));
      batch.images = at::randn({batch.size(), 3, 32, 32});
    }
    trained.sum += step.launch(batches, {i, 0.1 / static_cast<double>(i + 1), i / 6, std::ssize(batches)}).result();
  }
  for (const auto& [name, tensor] : state_dict(model)) trained.state.push_back(tensor.detach().cpu());
  for (const auto& [name, tensor] : optimizer->state()) trained.state.push_back(tensor.cpu());
  return trained;
}

}  // namespace settrain::test
