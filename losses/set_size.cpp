#include "losses/set_size.h"

#include <fmt/format.h>

namespace settrain {

config::Key SetSizeOptions::key(int64_t default_k, const std::string& source) {
  return config::key("k", &SetSizeOptions::k, default_k,
                     "Size of the sets to train for: the label should be among the k best scores. Less than the number "
                     "of classes. Default: " +
                         source + ".")
      .at_least(1)
      .in("classes");
}

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
