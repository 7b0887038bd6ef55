// The joint distribution of labels and cells behind the synthetic data set.
#pragma once

#include <cstdint>
#include <vector>

namespace settrain {

/// The inverse distribution function of `probabilities` at u in [0, 1).
int64_t draw_class(const std::vector<double>& probabilities, double u);

/// See make_synthetic() for the distribution.
class SyntheticJoint {
 public:
  SyntheticJoint(int64_t num_classes, int64_t group_size, double ambiguity, double imbalance);

  int64_t num_classes() const { return static_cast<int64_t>(prior_.size()); }
  int64_t num_groups() const { return (num_classes() + group_size_ - 1) / group_size_; }
  int64_t group_of(int64_t c) const { return c / group_size_; }

  /// [classes] P(y).
  const std::vector<double>& prior() const { return prior_; }
  /// P(cell | y).
  double cell_given_label(int64_t cell, int64_t label) const;
  /// [classes] P(y | cell).
  std::vector<double> label_given_cell(int64_t cell) const;

  /// Inverse distribution functions, of numbers in [0, 1).
  int64_t draw_label(double u) const;
  int64_t draw_cell(int64_t label, double u) const;

  /// [classes] whole numbers that sum to `total` and follow the prior (largest remainders first), each at least one
  /// where `total` is at least the number of classes.
  std::vector<int64_t> counts(int64_t total) const;

 private:
  double ambiguity_of(int64_t group) const;
  int64_t group_begin(int64_t group) const { return group * group_size_; }
  int64_t group_end(int64_t group) const;

  int64_t group_size_;
  double ambiguity_;
  std::vector<double> prior_;
};

}  // namespace settrain
