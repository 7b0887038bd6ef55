#include "datasets/synthetic_joint.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace settrain {

SyntheticJoint::SyntheticJoint(int64_t num_classes, int64_t group_size, double ambiguity, double imbalance)
    : group_size_(group_size), ambiguity_(ambiguity) {
  double sum = 0;
  for (int64_t j = 0; j < num_classes; ++j) {
    prior_.push_back(std::pow(imbalance, -static_cast<double>(j) / static_cast<double>(num_classes - 1)));
    sum += prior_.back();
  }
  for (double& p : prior_) p /= sum;
}

int64_t SyntheticJoint::group_end(int64_t group) const {
  return std::min(num_classes(), (group + 1) * group_size_);
}

double SyntheticJoint::ambiguity_of(int64_t group) const {
  if (num_groups() == 1) return ambiguity_;
  const double place = static_cast<double>(group) / static_cast<double>(num_groups() - 1);
  return std::min(1.0, ambiguity_ * (0.5 + place));
}

double SyntheticJoint::cell_given_label(int64_t cell, int64_t label) const {
  const int64_t group = group_of(label);
  if (group_of(cell) != group) return 0;
  const double a = ambiguity_of(group);
  const double spread = a / static_cast<double>(group_end(group) - group_begin(group));
  return cell == label ? 1 - a + spread : spread;
}

std::vector<double> SyntheticJoint::label_given_cell(int64_t cell) const {
  std::vector<double> posterior(prior_.size());
  double sum = 0;
  for (int64_t y = 0; y < num_classes(); ++y) {
    const auto i = static_cast<size_t>(y);
    posterior[i] = prior_[i] * cell_given_label(cell, y);
    sum += posterior[i];
  }
  for (double& p : posterior) p /= sum;
  return posterior;
}

int64_t draw_class(const std::vector<double>& probabilities, double u) {
  size_t c = 0;
  for (; c + 1 < probabilities.size(); ++c) {
    u -= probabilities[c];
    if (u < 0) break;
  }
  return static_cast<int64_t>(c);
}

int64_t SyntheticJoint::draw_label(double u) const {
  return draw_class(prior_, u);
}

int64_t SyntheticJoint::draw_cell(int64_t label, double u) const {
  const int64_t group = group_of(label);
  const double a = ambiguity_of(group);
  if (u >= a) return label;
  const int64_t begin = group_begin(group), size = group_end(group) - begin;
  return begin + std::min(size - 1, static_cast<int64_t>(u / a * static_cast<double>(size)));
}

std::vector<int64_t> SyntheticJoint::counts(int64_t total) const {
  const int64_t least = total >= num_classes() ? 1 : 0;
  std::vector<int64_t> counts;
  std::vector<double> remainders;
  for (const double p : prior_) {
    const double wanted = p * static_cast<double>(total);
    counts.push_back(std::max(least, static_cast<int64_t>(wanted)));
    remainders.push_back(wanted - static_cast<double>(counts.back()));
  }
  int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (; left > 0; --left) {
    const auto largest = std::max_element(remainders.begin(), remainders.end());
    ++counts[static_cast<size_t>(largest - remainders.begin())];
    *largest -= 1;
  }
  // Classes that were lifted to one sample may have taken more than rounding left over: the most frequent classes give
  // it back.
  for (; left < 0; ++left) --*std::max_element(counts.rbegin(), counts.rend());
  return counts;
}

}  // namespace settrain
