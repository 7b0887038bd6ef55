// The cost of a network, by its shapes alone.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/registry.h"

namespace settrain {

struct NetworkCost {
  int64_t parameters = 0;
  int64_t multiply_adds = 0;  // of convolutions, linear layers, attention and heads, in the forward pass of an image
};

/// Builds the model without storage for its weights, and runs it on an image without pixels: takes milliseconds.
NetworkCost network_cost(const ModelEntry& entry, const config::Config& config, const ModelContext& context);

/// Multiply-adds of a training step as a multiple of those of the forward pass: 3 where all parts are trained, 1 for
/// the head alone. Between them, the backward pass ends at the lowest layer (Model::layers()) that is trained in part,
/// and computes no gradients of weights that are not trained. The head's own backward pass is neglected. Takes
/// milliseconds, as network_cost().
double training_passes(const ModelEntry& entry, const config::Config& config, const ModelContext& context);

/// Throws DataError where the parts that model.trainable names cannot be trained on a batch of one image, since one
/// pixel is left of it in some batch norm. Takes milliseconds, as network_cost().
void check_batch_of_one(const ModelEntry& entry, const config::Config& config, const ModelContext& context);

/// While one lives, layers that this thread builds have no storage, and what they would compute is counted.
class CostCounter {
 public:
  CostCounter();
  ~CostCounter();
  CostCounter(const CostCounter&) = delete;
  CostCounter& operator=(const CostCounter&) = delete;

  /// Where new layers' tensors belong: the CPU, or ATen's device without storage.
  static c10::Device device();
  /// Called by layers whose input has no storage. `weight`: the parameter by which they multiply it, if any.
  static void add(int64_t multiply_adds, const at::Tensor& weight = {});

  int64_t multiply_adds() const;
  /// The calls of add() in their order; nullptr for no weight.
  const std::vector<std::pair<const c10::TensorImpl*, int64_t>>& products() const { return products_; }

 private:
  std::vector<std::pair<const c10::TensorImpl*, int64_t>> products_;
};

}  // namespace settrain
