#include "src/inference/group_sums.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace settrain {

GroupSums::GroupSums(const ImageGroups& groups, ProbabilityKind kind)
    : groups_(groups), kind_(kind), missing_(groups.names.size()) {
  for (const int64_t group : groups.group_of) ++missing_[static_cast<size_t>(group)];
}

GroupSums::Group& GroupSums::group_of(int64_t image) {
  const int64_t number = groups_.group_of[static_cast<size_t>(image)];
  --missing_[static_cast<size_t>(number)];
  return started_[number];
}

bool GroupSums::is_complete(int64_t image) const {
  return missing_[static_cast<size_t>(groups_.group_of[static_cast<size_t>(image)])] == 0;
}

bool GroupSums::add(int64_t image, const double* log_probabilities, int64_t classes) {
  Group& group = group_of(image);
  group.sum.resize(static_cast<size_t>(classes));
  for (int64_t c = 0; c < classes; ++c) group.sum[static_cast<size_t>(c)] += log_probabilities[c];
  ++group.images;
  return is_complete(image);
}

bool GroupSums::add(int64_t image, const std::string& error) {
  Group& group = group_of(image);
  if (group.unreadable++ == 0) group.error = error;
  return is_complete(image);
}

GroupSums::Group GroupSums::take(int64_t image) {
  return std::move(started_.extract(groups_.group_of[static_cast<size_t>(image)]).mapped());
}

at::Tensor GroupSums::log_probabilities(const at::Tensor& scores) const {
  const at::Tensor exact = scores.to(at::kDouble);
  return (kind_ == ProbabilityKind::kSoftmax ? at::log_softmax(exact, 1) : at::log_sigmoid(exact)).contiguous();
}

at::Tensor GroupSums::scores_of(const Group& group) const {
  at::Tensor scores = at::empty({1, std::ssize(group.sum)}, at::kDouble);
  double* score = scores.mutable_data_ptr<double>();
  for (const double sum : group.sum) {
    const double log_p = sum / static_cast<double>(group.images);
    // The logit of p, where a sigmoid makes the probability; rounding may have made p 1.
    const double log_not_p = std::log(std::max(-std::expm1(log_p), 1e-300));
    *score++ = kind_ == ProbabilityKind::kSoftmax ? log_p : log_p - log_not_p;
  }
  return scores;
}

}  // namespace settrain
