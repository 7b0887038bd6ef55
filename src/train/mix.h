// Mixup and CutMix: pairs of training images made into one, with both labels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "losses/loss.h"
#include "src/config/key.h"

namespace settrain {

/// Keys of the section `train`.
struct MixOptions {
  enum class Kind { kNone, kMixup, kCutmix, kEither };
  using enum Kind;

  Kind kind = kNone;
  double mixup_alpha = 0, cutmix_alpha = 0;  // in (0, 1]

  static config::Keys keys();
  bool is_on() const { return kind != kNone; }
};

/// Refuses to mix for a loss whose entry does not say takes_mixed_labels, or batches of one image; and an alpha that
/// train.mix does not read.
config::Rule mix_rule(const LossRegistry& losses);

/// All that a mix depends on besides its images: one of the batches of a step.
struct MixKey {
  uint64_t seed;
  int64_t step, batch = 0;
};

/// A batch whose images are made of two each.
struct MixedBatch {
  at::Tensor images;          // [batch, channels, height, width]
  at::Tensor partner_labels;  // [batch] int64: of the image before it in the batch, the last one's for the first;
                              // undefined where nothing is mixed
  double share = 1;           // of the image's own label in the loss, in [0, 1]; the partner's has the rest
};

/// Mixes every image of `images` [batch, channels, height, width], floating point, with the one before it. mixup (Zhang
/// et al., ICLR 2018): share x + (1 - share) x', share drawn from Beta(alpha, alpha). cutmix (Yun et al., ICCV 2019): a
/// rectangle of x' replaces that of x, the same one in the whole batch. Its area is (1 - share) of the image's; where
/// the border cuts it off, `share` becomes that of the pixels that stay. either: one of the two for each batch. none:
/// the images as they are, with a share of 1. A function of the arguments alone.
MixedBatch mix(const MixOptions& options, const at::Tensor& images, const at::Tensor& labels, const MixKey& key);

/// share L(s, y) + (1 - share) L(s, y'), for every sample and in sum; L(s, y) where nothing is mixed. Partners are the
/// batch's own images in another order, so a sum of class weights over the batch (Loss::divisor) is that of either
/// label.
LossValue mixed_loss(Loss& loss, const LossInput& input, const MixedBatch& mixed);

}  // namespace settrain
