#include "models/cost.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <string>

#include "models/model.h"
#include "models/model_options.h"

namespace settrain {
namespace {

thread_local CostCounter* counter = nullptr;

void forward_one_image(Model& model, const ModelContext& context) {
  model.forward(at::empty({1, context.channels, context.height, context.width}, c10::kMeta));
}

NetworkCost run_one_image(const ModelEntry& entry, const config::Config& config, const ModelContext& context,
                          bool training) {
  const c10::NoGradGuard no_grad;
  CostCounter costs;
  const auto model = entry.make(config, context);
  if (training) model->train_only(trained_parts(config));
  model->train(training);
  forward_one_image(*model, context);
  return {model->num_parameters(), costs.multiply_adds()};
}

}  // namespace

CostCounter::CostCounter() {
  counter = this;
}

CostCounter::~CostCounter() {
  counter = nullptr;
}

c10::Device CostCounter::device() {
  return counter ? c10::kMeta : c10::kCPU;
}

void CostCounter::add(int64_t multiply_adds, const at::Tensor& weight) {
  if (counter)
    counter->products_.emplace_back(weight.defined() ? weight.unsafeGetTensorImpl() : nullptr, multiply_adds);
}

int64_t CostCounter::multiply_adds() const {
  int64_t sum = 0;
  for (const auto& product : products_) sum += product.second;
  return sum;
}

NetworkCost network_cost(const ModelEntry& entry, const config::Config& config, const ModelContext& context) {
  return run_one_image(entry, config, context, /*training=*/false);
}

double training_passes(const ModelEntry& entry, const config::Config& config, const ModelContext& context) {
  const config::Texts parts = trained_parts(config);
  if (parts == config::Texts{ModelOptions::kHead}) return 1;
  const c10::NoGradGuard no_grad;
  CostCounter costs;
  const auto model = entry.make(config, context);
  model->train_only(parts);
  model->eval();
  forward_one_image(*model, context);

  struct Weight {
    int64_t below_head;  // layers
    bool is_trained;
  };
  std::map<const c10::TensorImpl*, Weight> weights;
  const std::map<std::string, int64_t> below_head = model->layers_below_head();
  int64_t lowest = 0;
  for (const auto& item : model->named_parameters()) {
    const Weight weight{below_head.at(item.key()), item.value().requires_grad()};
    weights[item.value().unsafeGetTensorImpl()] = weight;
    if (weight.is_trained) lowest = std::max(lowest, weight.below_head);
  }
  int64_t backward = 0;
  bool is_reached = false;
  for (const auto& [tensor, multiply_adds] : costs.products()) {
    const auto found = weights.find(tensor);
    if (found != weights.end()) is_reached = found->second.below_head <= lowest;
    // A product of two activations has two gradients, too.
    const bool has_two_gradients = found == weights.end() || found->second.is_trained;
    if (is_reached) backward += (has_two_gradients ? 2 : 1) * multiply_adds;
  }
  return 1 + static_cast<double>(backward) / static_cast<double>(costs.multiply_adds());
}

void check_batch_of_one(const ModelEntry& entry, const config::Config& config, const ModelContext& context) {
  run_one_image(entry, config, context, /*training=*/true);
}

}  // namespace settrain
