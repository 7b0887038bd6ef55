// What the noised losses share: the smoothed (K+1)-th largest score of a batch, and the keys that control it.
#pragma once

#include <cstdint>

#include "losses/loss.h"

namespace settrain {

struct SampledTopkOptions {
  int64_t k;
  double epsilon;
  int64_t num_draws;
};

/// The declarations of loss.k, loss.epsilon and loss.num_draws. `source` ends the sentences: where the defaults come
/// from.
config::Keys sampled_topk_keys(const SampledTopkOptions& defaults, const std::string& source);

/// Reads them. Throws ConfigError unless k < num_classes.
SampledTopkOptions read_sampled_topk(const config::Config& config, int64_t num_classes);

/// [batch] smoothed (K+1)-th largest of `scores`, with the noise of `input` where it has some ([batch, num_draws,
/// classes], else ShapeError) and of its noise key otherwise.
at::Tensor sampled_topk(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options);

}  // namespace settrain
