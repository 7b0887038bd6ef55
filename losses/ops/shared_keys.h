// Configuration keys that several losses have.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

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
