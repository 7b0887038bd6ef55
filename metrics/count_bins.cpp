#include "metrics/count_bins.h"

#include <fmt/format.h>

#include <limits>

namespace settrain {

config::Keys CountBinOptions::keys() {
  return {
      config::key("count_bins", &CountBinOptions::count_bins, {},
                  "Ascending bounds of further groups of classes by their training images, for every K of top_k and "
                  "average_k. With [10, 50]: bin0_9_top5, bin10_49_top5 and bin50_top5 (50 and more), means over "
                  "the classes of each.")
          .at_least(1)
          .distinct()
          .in("images")};
}

std::vector<CountBin> CountBinOptions::bins() const {
  std::vector<CountBin> bins;
  int64_t first = 0;
  for (const int64_t bound : count_bins) {
    bins.push_back({fmt::format("bin{}_{}", first, bound - 1), first, bound - 1});
    first = bound;
  }
  if (first > 0) bins.push_back({fmt::format("bin{}", first), first, std::numeric_limits<int64_t>::max()});
  return bins;
}

}  // namespace settrain
