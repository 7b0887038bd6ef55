// Larger margins for rarer classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "losses/ops/loss_input.h"
#include "src/config/config.h"

namespace settrain {

/// A number for every class.
class ClassValues {
 public:
  explicit ClassValues(const std::vector<double>& values);  // [classes]

  /// [batch] the values of the labels ([batch] int64), in the dtype and on the device of `like`.
  at::Tensor of(const at::Tensor& labels, const at::Tensor& like) const;

  /// [classes] all values, in the dtype and on the device of `like`.
  const at::Tensor& of_all(const at::Tensor& like) const;

 private:
  at::Tensor values_;          // [classes] float64, on the CPU
  mutable at::Tensor in_use_;  // as of_all() last returned them
};

/// [classes] margins m_j = max_margin * (n_min / n_j)^(1/4), with n_j = class_counts[j] training images and n_min the
/// smallest positive count: n_j^(-1/4) scaled so that the largest margin is `max_margin` (Garcin et al., ICML 2022,
/// below eq. 13; Cao et al., NeurIPS 2019). A class without an image takes the largest margin. Throws DataError at a
/// negative count.
std::vector<double> class_margins(std::span<const int64_t> class_counts, double max_margin);

/// The margins of class_margins(), and the factor that brings cosines to the size of logits.
struct ClassMargins {
  ClassValues margins;
  double scale;

  /// The declarations of loss.max_margin, loss.scale and loss.zero_count_class. `source` ends their sentences: it says
  /// where the defaults come from.
  static config::Keys keys(double default_max_margin, double default_scale, const std::string& source);
  /// Reads these keys. Throws ConfigError for a class without a training image where loss.zero_count_class is error.
  static ClassMargins read(const config::Config& config, const LossContext& context);
};

}  // namespace settrain
