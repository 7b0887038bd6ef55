// Sets out of scores, by several rules, with the probabilities of what they hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "src/inference/trained_model.h"

namespace settrain {

/// Best first; equal ones in the order of their numbers.
struct PredictedSet {
  std::vector<int64_t> members;  // classes, or superclasses
  std::vector<float> probabilities;
};

/// What a model is asked to answer with.
class SetMaker {
 public:
  /// The rules by their names; without any those that were calibrated, else top:5, or fewer where there are no 5
  /// classes. top and error are calibrated here, as they need no images. `by_superclass`: sets of superclasses, of
  /// which each has the probability of its classes together (of sigmoids: the largest). top and error are then rules on
  /// these; other rules answer with the superclasses of the classes in their sets. Throws ConfigError where a rule does
  /// not suit the model, or is not calibrated.
  SetMaker(const TrainedModel& model, const std::vector<std::string>& rules, bool by_superclass);

  const std::vector<CalibratedRule>& rules() const { return rules_; }
  const std::vector<std::string>& rule_names() const { return rule_names_; }
  /// Of what the sets hold.
  const std::vector<std::string>& names() const { return names_; }

  /// [images][rules]; `scores` [images, classes] float32 or float64 logits on the CPU. `first_number`: of the first
  /// image, from which randomised rules draw.
  std::vector<std::vector<PredictedSet>> operator()(const at::Tensor& scores, int64_t first_number) const;

 private:
  /// [images, superclasses] float64 scores whose probabilities are those of the superclass' classes together.
  at::Tensor superclass_scores(const at::Tensor& scores) const;
  at::Tensor superclass_sets(const at::Tensor& sets) const;

  std::vector<CalibratedRule> rules_;
  std::vector<std::string> rule_names_, names_;
  std::vector<int64_t> superclass_of_;  // empty: sets of classes
  ProbabilityKind kind_;
};

}  // namespace settrain
