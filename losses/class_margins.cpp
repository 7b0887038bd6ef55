#include "losses/class_margins.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "losses/margins.h"
#include "src/core/error.h"

namespace settrain {
namespace {

struct MarginOptions {
  double max_margin, scale;
  std::string zero_count_class;
};

}  // namespace

at::Tensor ClassMargins::of(const at::Tensor& labels, const at::Tensor& scores) const {
  if (in_use_.dtype() != scores.dtype() || in_use_.device() != scores.device()) in_use_ = margins_.to(scores.options());
  return in_use_.index_select(0, labels);
}

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
  if (static_cast<int64_t>(counts.size()) != context.num_classes) {
    throw DataError(fmt::format("class_counts: expected {}, one a class, got {}", context.num_classes, counts.size()));
  }
  for (size_t j = 0; options.zero_count_class == "error" && j < counts.size(); ++j) {
    if (counts[j] > 0) continue;
    config.fail("loss.zero_count_class",
                fmt::format("class {} has no training image, so no margin; remove the class from the data, or set "
                            "largest_margin",
                            j));
  }
  return ClassMargins(at::tensor(class_margins(counts, options.max_margin), at::kDouble));
}

double ClassMargins::read_scale(const config::Config& config) {
  return config.read<MarginOptions>("loss").scale;
}

}  // namespace settrain
