#include "losses/ops/set_size.h"

#include <fmt/format.h>

namespace settrain {

int64_t read_set_size(const config::Config& config, int64_t num_classes) {
  const int64_t k = config.read<SetSizeOptions>("loss").k;
  check_set_size(config, k, num_classes);
  return k;
}

void check_set_size(const config::Config& config, int64_t k, int64_t num_classes) {
  if (k < num_classes) return;
  config.fail("loss.k", fmt::format("must be less than the number of classes: expected 1 to {} for {} classes, got {}",
                                    num_classes - 1, num_classes, k));
}

}  // namespace settrain
