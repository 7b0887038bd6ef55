// The cost of a network, by its shapes alone.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "models/registry.h"

namespace settrain {

struct NetworkCost {
  int64_t parameters = 0;
  int64_t multiply_adds = 0;  // of convolutions, linear layers, attention and heads, in the forward pass of an image
};

/// Builds the model without storage for its weights, and runs it on an image without pixels: takes milliseconds.
NetworkCost network_cost(const ModelEntry& entry, const config::Config& config, const ModelContext& context);

/// Throws DataError where the parts that model.trainable names cannot be trained on a batch of one image, since one
/// pixel is left of it in some batch norm. As fast.
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
  /// Called by layers whose input has no storage.
  static void add(int64_t multiply_adds);

  int64_t multiply_adds() const { return multiply_adds_; }

 private:
  int64_t multiply_adds_ = 0;
};

}  // namespace settrain
