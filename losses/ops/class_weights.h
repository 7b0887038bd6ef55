// Weights of the classes, for losses of long-tailed data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "losses/ops/class_margins.h"
#include "src/config/config.h"

namespace settrain {

struct ClassWeightOptions {
  enum class Kind { kNone, kInverseFrequency, kEffectiveNumber, kList };
  enum class Mean { kMeanOverSamples, kMeanOverWeights };
  using enum Kind;
  using enum Mean;

  Kind kind;
  double beta;
  config::Reals list;
  int64_t from_epoch;
  Mean mean;

  static config::Keys keys();
};

/// [classes] weights by `counts` [classes], the training images of every class: 1/n_j (inverse_frequency), or (1 -
/// beta)/(1 - beta^n_j), the inverse of the effective number of images (Cui et al., CVPR 2019, eq. 2), beta in [0, 1).
/// Scaled to a mean of 1 over the classes that have images; those without have weight 0.
std::vector<double> inverse_frequency_weights(const std::vector<int64_t>& counts);
std::vector<double> effective_number_weights(const std::vector<int64_t>& counts, double beta);

/// Class weights, from an epoch on. With a later start this is the deferred re-weighting of Cao et al., NeurIPS 2019.
class ClassWeights {
 public:
  ClassWeights(std::vector<double> weights, const ClassWeightOptions& options);

  /// The class weights that the config asks for; nothing without any. Throws ConfigError where the list has not one
  /// weight for each class, or only zeros.
  static std::optional<ClassWeights> read(const config::Config& config, const std::vector<int64_t>& counts);

  /// [batch] `losses` times the weights of `labels`; before the first weighted epoch, `losses`.
  at::Tensor apply(const at::Tensor& losses, const at::Tensor& labels, int64_t epoch) const;

  /// [batch, classes] `losses` of every class as the label times its weight; before the first weighted epoch, `losses`.
  at::Tensor apply_to_all(const at::Tensor& losses, int64_t epoch) const;

  /// The divisor of a mean loss over samples with these labels, [batch] int64: their number, or the sum of their
  /// weights. For the latter it waits for a GPU that holds the labels.
  double total(const at::Tensor& labels, int64_t epoch) const;

 private:
  std::vector<double> weights_;
  ClassValues weight_of_;
  int64_t from_epoch_;
  bool mean_over_weights_;
};

}  // namespace settrain
