#include "models/cost.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "models/model.h"
#include "models/model_options.h"

namespace settrain {
namespace {

thread_local CostCounter* counter = nullptr;

NetworkCost run_one_image(const ModelEntry& entry, const config::Config& config, const ModelContext& context,
                          bool training) {
  const c10::NoGradGuard no_grad;
  CostCounter costs;
  const auto model = entry.make(config, context);
  if (training) model->train_only(trained_parts(config));
  model->train(training);
  model->forward(at::empty({1, context.channels, context.height, context.width}, c10::kMeta));
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

void CostCounter::add(int64_t multiply_adds) {
  if (counter) counter->multiply_adds_ += multiply_adds;
}

NetworkCost network_cost(const ModelEntry& entry, const config::Config& config, const ModelContext& context) {
  return run_one_image(entry, config, context, /*training=*/false);
}

void check_batch_of_one(const ModelEntry& entry, const config::Config& config, const ModelContext& context) {
  run_one_image(entry, config, context, /*training=*/true);
}

}  // namespace settrain
