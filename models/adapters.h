// Adapters: small layers that are trained in place of a trained network's own weights (model.adapter). `settrain
// export` merges LoRA into the weights: src/inference/export_weights.
#pragma once

#include <cstdint>
#include <memory>

#include "models/layers.h"
#include "models/model_options.h"

namespace settrain {

/// A layer whose output is added to that of another one; at first it is zero.
class Adapter : public Layer {};

/// LoRA beside a linear layer, from [..., in] to [..., out] (Hu et al., 2022, section 4.1).
std::shared_ptr<Layer> lora_layer(int64_t in, int64_t out, const AdapterOptions& options);

/// AdaptFormer beside an MLP, from [..., features] to the same (Chen et al., NeurIPS 2022, equations 4 and 5).
std::shared_ptr<Layer> adaptformer_layer(int64_t features, const AdapterOptions& options);

}  // namespace settrain
