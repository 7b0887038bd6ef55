// The key k that losses for sets share.
#pragma once

#include <string>

#include "src/config/config.h"

namespace settrain {

/// The declaration of loss.k, which fills `member`. `source` ends its sentence: where the default comes from.
template <class Options>
config::Key set_size_key(int64_t Options::*member, int64_t default_k, const std::string& source) {
  return config::key("k", member, default_k,
                     "Size of the sets to train for: the label should be among the k best scores. Less than the number "
                     "of classes. Default: " +
                         source + ".")
      .at_least(1)
      .in("classes");
}

/// For losses with k and no other key like it.
struct SetSizeOptions {
  int64_t k;

  static config::Key key(int64_t default_k, const std::string& source) {
    return set_size_key(&SetSizeOptions::k, default_k, source);
  }
};

/// Reads it. Throws ConfigError unless k < num_classes.
int64_t read_set_size(const config::Config& config, int64_t num_classes);

/// Throws ConfigError, which names loss.k, unless k < num_classes.
void check_set_size(const config::Config& config, int64_t k, int64_t num_classes);

}  // namespace settrain
