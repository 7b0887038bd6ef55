// What the losses with class margins share: the margins as a tensor, and the keys that make them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "losses/ops/class_values.h"
#include "losses/ops/loss_context.h"
#include "src/config/config.h"

namespace settrain {

/// Margins of the classes by their training images, see margins.h.
class ClassMargins {
 public:
  explicit ClassMargins(const std::vector<double>& margins) : margins_(margins) {}  // [classes]

  /// [batch] margins of the labels, in the dtype and on the device of the scores.
  at::Tensor of(const at::Tensor& labels, const at::Tensor& scores) const { return margins_.of(labels, scores); }

  /// The declarations of loss.max_margin, loss.scale and loss.zero_count_class. `source` ends the sentences: where the
  /// defaults come from.
  static config::Keys keys(double default_max_margin, double default_scale, const std::string& source);
  /// Reads them. Throws ConfigError for a class without a training image where that is asked for.
  static ClassMargins read(const config::Config& config, const LossContext& context);
  static double read_scale(const config::Config& config);

 private:
  ClassValues margins_;
};

}  // namespace settrain
