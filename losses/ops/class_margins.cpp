#include "losses/ops/class_margins.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/error.h"

namespace settrain {
namespace {

struct MarginOptions {
  double max_margin, scale;
  std::string zero_count_class;
};

}  // namespace

ClassValues::ClassValues(const std::vector<double>& values)
    : values_(at::tensor(values, at::kDouble)), in_use_(values_) {}

at::Tensor ClassValues::of(const at::Tensor& labels, const at::Tensor& like) const {
  return of_all(like).index_select(0, labels);
}

const at::Tensor& ClassValues::of_all(const at::Tensor& like) const {
  if (in_use_.dtype() != like.dtype() || in_use_.device() != like.device()) in_use_ = values_.to(like.options());
  return in_use_;
}

std::vector<double> class_margins(std::span<const int64_t> class_counts, double max_margin) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (size_t j = 0; j < class_counts.size(); ++j) {
    if (class_counts[j] < 0) {
      throw DataError(fmt::format("class_counts[{}]: expected 0 or more images, got {}", j, class_counts[j]));
    }
    if (class_counts[j] > 0) smallest = std::min(smallest, class_counts[j]);
  }
  std::vector<double> margins;
  for (const int64_t count : class_counts) {
    const double ratio = count == 0 ? 1.0 : static_cast<double>(smallest) / static_cast<double>(count);
    margins.push_back(max_margin * std::sqrt(std::sqrt(ratio)));
  }
  return margins;
}

config::Keys ClassMargins::keys(double default_max_margin, double default_scale, const std::string& source) {
  using config::key;
  using Options = MarginOptions;
  return {key("max_margin", &Options::max_margin, default_max_margin,
              "Margin of the rarest class; the others' are smaller by the fourth root of the ratio of their counts. "
              "Default: " +
                  source + ".")
              .at_least(0)
              .in("scores")
              .by_epoch(),
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
  const auto empty = std::find_if(counts.begin(), counts.end(), [](int64_t count) { return count <= 0; });
  if (empty != counts.end() && options.zero_count_class == "error") {
    config.fail("loss.zero_count_class",
                fmt::format("class {} has no training image, so no margin; remove the class from the data, or set "
                            "largest_margin",
                            empty - counts.begin()));
  }
  return {ClassValues(class_margins(counts, options.max_margin)), options.scale};
}

}  // namespace settrain
