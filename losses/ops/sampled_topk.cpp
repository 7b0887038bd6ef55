#include "losses/ops/sampled_topk.h"

#include "losses/ops/gaussian_noise.h"
#include "losses/ops/set_size.h"
#include "losses/ops/smoothed_topk.h"
#include "src/core/shape.h"

namespace settrain {

using config::key;

config::Keys sampled_topk_keys(const SampledTopkOptions& defaults, const std::string& source) {
  using Options = SampledTopkOptions;
  return {
      set_size_key(&Options::k, defaults.k, source),
      key("epsilon", &Options::epsilon, defaults.epsilon,
          "Standard deviation of the noise on the scores; 0 is the calibrated hinge, which hardly trains. Raise it "
          "if training stalls at the start. Default: " +
              source + ".")
          .at_least(0)
          .in("scores"),
      key("num_draws", &Options::num_draws, defaults.num_draws,
          "Noise draws per sample (M in the thesis, B in the ICML paper). Default: " + source + ".")
          .at_least(1)
          .at_most(1000)
          .in("draws"),
  };
}

SampledTopkOptions read_sampled_topk(const config::Config& config, int64_t num_classes) {
  const auto options = config.read<SampledTopkOptions>("loss");
  check_set_size(config, options.k, num_classes);
  return options;
}

at::Tensor sampled_topk(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options) {
  const int64_t batch = scores.size(0), classes = scores.size(1);
  if (input.noise) check_shape("noise", input.noise->sizes(), {batch, options.num_draws, classes});
  const at::Tensor noise =
      input.noise ? *input.noise : gaussian_noise(input.noise_key, batch, options.num_draws, classes, scores.device());
  return smoothed_topk(scores, noise, options.k + 1, options.epsilon).values;
}

}  // namespace settrain
