#include "losses/ops/class_margins.h"

#include <fmt/format.h>

#include "losses/ops/margins.h"

namespace settrain {
namespace {

struct MarginOptions {
  double max_margin, scale;
  std::string zero_count_class;
};

}  // namespace

config::Keys ClassMargins::keys(double default_max_margin, double default_scale, const std::string& source) {
  using config::key;
  using Options = MarginOptions;
  return {key("max_margin", &Options::max_margin, default_max_margin,
              "Margin of the rarest class; the others' are smaller by the fourth root of the ratio of their counts. "
              "Default: " +
                  source + ".")
              .at_least(0)
              .in("scores"),
          key("scale", &Options::scale, default_scale,
              "Factor that brings cosines to the size of logits. Default: " + source +
                  "; the thesis, section 4.6.5, calls 30 (ldam) and 50 (noised) good defaults.")
              .above(0),
          key("zero_count_class", &Options::zero_count_class, "largest_margin",
              "A class without a training image, which the formula gives no margin: takes the largest, or is an error.")
              .one_of({"largest_margin", "error"})};
}

ClassMargins ClassMargins::read(const config::Config& config, const LossContext& context) {
  const auto options = config.read<MarginOptions>("loss");
  const auto& counts = context.class_counts;
  for (size_t j = 0; options.zero_count_class == "error" && j < counts.size(); ++j) {
    if (counts[j] > 0) continue;
    config.fail("loss.zero_count_class",
                fmt::format("class {} has no training image, so no margin; remove the class from the data, or set "
                            "largest_margin",
                            j));
  }
  return ClassMargins(class_margins(counts, options.max_margin));
}

double ClassMargins::read_scale(const config::Config& config) {
  return config.read<MarginOptions>("loss").scale;
}

}  // namespace settrain
