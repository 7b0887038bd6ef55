#include "models/batch_statistics.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "models/layers.h"
#include "models/model.h"

namespace settrain {

BatchStatistics::BatchStatistics(const Model& model, SumOverProcesses sum) : sum_(std::move(sum)) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    auto layer = std::dynamic_pointer_cast<BatchNorm>(module);
    if (!layer || std::ranges::none_of(layer->parameters(), &at::Tensor::requires_grad)) continue;
    size_ += 2 * layer->channels();
    layers_.push_back(std::move(layer));
  }
}

at::Tensor BatchStatistics::record(bool together) {
  if (layers_.empty()) return {};
  at::Tensor row = at::zeros({size_}, layers_[0]->statistics_options());
  int64_t place = 0;
  for (const auto& layer : layers_) {
    const int64_t channels = layer->channels();
    if (sum_) layer->share_statistics(together ? sum_ : SumOverProcesses());
    layer->record_in(row.narrow(0, place, channels), row.narrow(0, place + channels, channels));
    place += 2 * channels;
  }
  return row;
}

void BatchStatistics::release() {
  for (const auto& layer : layers_) {
    layer->record_in({}, {});
    if (sum_) layer->share_statistics({});
  }
}

void BatchStatistics::replay(const at::Tensor& rows) {
  const c10::NoGradGuard no_grad;
  int64_t place = 0;
  for (const auto& layer : layers_) {
    const int64_t channels = layer->channels();
    for (int64_t i = 0; i < rows.size(0); ++i) {
      layer->update(rows[i].narrow(0, place, channels), rows[i].narrow(0, place + channels, channels));
    }
    place += 2 * channels;
  }
}

}  // namespace settrain
