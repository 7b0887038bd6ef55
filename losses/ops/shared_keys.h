// Configuration keys that several losses have.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "losses/ops/score_ops.h"
#include "src/config/config.h"

namespace settrain {

/// The declaration of loss.k, which fills `member`. `source` ends its sentence: it says where the default comes from.
template <class Options>
config::Key set_size_key(int64_t Options::*member, int64_t default_k, const std::string& source) {
  return config::key("k", member, default_k,
                     "Size of the sets to train for: the label should be among the k best scores. Less than the number "
                     "of classes; the default is lowered where it is not. Default: " +
                         source + ".")
      .at_least(1)
      .in("classes");
}

/// Reads the options of a loss with a k, the member `k` of Options. Throws ConfigError unless k < num_classes.
template <class Options>
Options read_with_set_size(const config::Config& config, int64_t num_classes) {
  auto options = config.read<Options>("loss");
  if (options.k < num_classes) return options;
  config.fail("loss.k", fmt::format("must be less than the number of classes: expected 1 to {} for {} classes, got {}",
                                    num_classes - 1, num_classes, options.k));
}

/// The declaration of loss.epsilon, which fills `member`. `source` says where `paper_epsilon` comes from.
template <class Options>
config::Key noise_key(double Options::*member, double paper_epsilon, const std::string& source) {
  return config::key(
             "epsilon", member, kSpreadOfScores,
             fmt::format("Standard deviation of the noise on the scores. auto: that of the sample's own scores, so "
                         "that it grows with them and suits any head and learning rate. 0 is the calibrated hinge, "
                         "which may hardly train, as may a number far below the spread of the scores. Value of {}: {}.",
                         source, paper_epsilon))
      .at_least(0)
      .word("auto", static_cast<int64_t>(kSpreadOfScores))
      .in("scores")
      .by_epoch();
}

/// LossEntry::stall_advice of the losses with this key.
inline constexpr const char* kNoiseStallAdvice =
    "Try loss.epsilon: auto, or a number well above the spread of the scores, which lets every class have its turn; or "
    "a schedule.warmup_epochs.";

/// The declaration of loss.margin, which fills `member`.
template <class Options>
config::Key smoothed_margin_key(double Options::*member) {
  return config::key("margin", member, 1.0,
                     "By how much the label's score should exceed the smoothed (k+1)-th largest. Default: ICML "
                     "2022, eq. 10.")
      .at_least(0)
      .in("scores")
      .by_epoch();
}

}  // namespace settrain
