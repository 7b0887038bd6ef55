// What the noised losses share: the smoothed (K+1)-th largest score of a batch, and the keys that control it.
#pragma once

#include <cstdint>

#include "losses/ops/loss_input.h"
#include "src/config/config.h"

namespace settrain {

struct SampledTopkOptions {
  int64_t k;
  double epsilon;
  int64_t num_draws;
};

/// The declarations of loss.k, loss.epsilon and loss.num_draws. `source` ends the sentences: where the defaults come
/// from.
config::Keys sampled_topk_keys(const SampledTopkOptions& defaults, const std::string& source);

/// For LossEntry::stall_advice of the losses that have these keys.
inline constexpr const char* kSampledTopkStallAdvice =
    "Try a larger loss.epsilon: at the start all scores are close to each other, and an epsilon well above their "
    "spread lets every class "
    "have its turn (1.0 for a linear head); or a schedule.warmup_epochs.";

/// Reads them. Throws ConfigError unless k < num_classes.
SampledTopkOptions read_sampled_topk(const config::Config& config, int64_t num_classes);

/// [batch] smoothed (K+1)-th largest of `scores`, with the noise of `input` where it has some ([batch, num_draws,
/// classes], else ShapeError) and of its noise key otherwise.
at::Tensor sampled_topk(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options);

}  // namespace settrain
