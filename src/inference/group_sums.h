// Log-probabilities of the images of a group, added up as they come.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "src/inference/image_groups.h"

namespace settrain {

class GroupSums {
 public:
  GroupSums(const ImageGroups& groups, ProbabilityKind kind);

  struct Group {
    std::vector<double> sum{};  // [classes] of log-probabilities
    int64_t images = 0, unreadable = 0;
    std::string error{};  // the first one
  };

  /// Adds an image by its log-probabilities, [classes] float64, or by its error. Whether it was the last of its group.
  bool add(int64_t image, const double* log_probabilities, int64_t classes);
  bool add(int64_t image, const std::string& error);

  /// Takes the image's group out, which must be complete.
  Group take(int64_t image);

  /// [images, classes] float64: what add() takes, of scores as rules take them.
  at::Tensor log_probabilities(const at::Tensor& scores) const;

  /// [1, classes] float64 scores whose probabilities are the geometric means over the group's images; those of a
  /// softmax then add up to 1 again.
  at::Tensor scores_of(const Group& group) const;

 private:
  Group& group_of(int64_t image);
  bool is_complete(int64_t image) const;

  const ImageGroups& groups_;
  ProbabilityKind kind_;
  std::vector<int64_t> missing_;                // [groups] images that have not been added
  std::unordered_map<int64_t, Group> started_;  // by number
};

}  // namespace settrain
