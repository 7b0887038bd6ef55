// Vision transformers, as torchvision's: Dosovitskiy et al., "An Image is Worth 16x16 Words" (2021), table 1.
#pragma once

#include <memory>

#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/registry.h"

namespace settrain {

struct VisionTransformerShape {
  int64_t patch, blocks, features, heads;
};

inline constexpr VisionTransformerShape kVitB16{16, 12, 768, 12};

/// A token for every patch of the image and one for its class, which the head sees after the blocks. Tokens know their
/// places by an embedding, so the model is for images of the size that it was built with.
///
/// state_dict names: class_token, conv_proj, encoder.pos_embedding,
/// encoder.layers.encoder_layer_B.{ln_1,self_attention,ln_2,mlp.{0,3}}, encoder.ln, heads.head.
class VisionTransformer : public Model {
 public:
  /// Throws KeyError for images that are not square or whose side is no multiple of the patches'.
  VisionTransformer(const VisionTransformerShape& shape, const ModelOptions& options, const ModelContext& context);
  ModelOutput forward(const at::Tensor& images) override;

 private:
  int64_t channels_, size_;
  at::Tensor class_token_, pos_embedding_;
  std::shared_ptr<Layer> conv_proj_, layers_, norm_;
  std::unique_ptr<Heads> heads_;
};

}  // namespace settrain
