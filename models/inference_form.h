// How a model that is no longer trained computes.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace settrain {

class Model;
struct ModelContext;

enum class InferenceForm {
  kExact,  // as in training
  kFast,   // batch norms folded into convolutions; a layer's product, activation and sum in one operation
  kBf16,   // the same in bfloat16; scores stay float32
};

/// Whether bf16 costs time there instead of saving it: a CPU without instructions for it.
bool bf16_is_emulated(c10::Device device);

/// Prepares the model, with its weights, to answer in that form on that device. It stays in the exact form where the
/// scores of a random image are not finite in both, since fused activations may hide a NaN from the scores, or differ
/// in the fast form by more than 1e-4 of the largest, or of 1. Returns why, or an empty text.
std::string prepare_checked(Model& model, InferenceForm form, const ModelContext& context, c10::Device device);

}  // namespace settrain
