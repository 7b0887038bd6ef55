// The key k that losses for sets share.
#pragma once

#include <string>

#include "src/config/config.h"

namespace settrain {

struct SetSizeOptions {
  int64_t k;

  /// The declaration of loss.k. `source` ends its sentence: where the default comes from.
  static config::Key key(int64_t default_k, const std::string& source);
};

/// Reads it. Throws ConfigError unless k < num_classes.
int64_t read_set_size(const config::Config& config, int64_t num_classes);

/// Throws ConfigError, which names loss.k, unless k < num_classes.
void check_set_size(const config::Config& config, int64_t k, int64_t num_classes);

}  // namespace settrain
