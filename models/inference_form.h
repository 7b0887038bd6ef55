// How a model that is no longer trained computes.
#pragma once

namespace settrain {

enum class InferenceForm {
  kExact,  // as in training
  kFast,   // batch norms folded into convolutions; a layer's product, activation and sum in one operation
  kBf16,   // the same in bfloat16; scores stay float32
};

}  // namespace settrain
