// Sets out of scores, by several rules, with the probabilities of their members; and these sets as JSON.
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

/// Makes the sets by which a model answers.
class SetMaker {
 public:
  /// `rules`: names of rules. Without any, the rules are those that were calibrated, or else top:5 (top:N where there
  /// are only N < 5 classes). top and error need no images and are calibrated here.
  ///
  /// `by_superclass`: the sets hold superclasses. The probability of a superclass is that of its classes together (of
  /// sigmoids: the largest). top and error are then rules on superclasses; other rules answer with the superclasses of
  /// the classes in their sets. Throws ConfigError where a rule does not suit the model, or is not calibrated.
  SetMaker(const TrainedModel& model, const std::vector<std::string>& rules, bool by_superclass);

  const std::vector<CalibratedRule>& rules() const { return rules_; }
  const std::vector<std::string>& rule_names() const { return rule_names_; }
  /// The names of the classes or superclasses.
  const std::vector<std::string>& names() const { return names_; }

  /// [images][rules]; `scores` [images, classes] float32 or float64 logits on the CPU. `first_number`: the number of
  /// the first image, from which randomised rules draw.
  std::vector<std::vector<PredictedSet>> operator()(const at::Tensor& scores, int64_t first_number) const;

 private:
  at::Tensor superclass_scores(const at::Tensor& scores) const;
  at::Tensor superclass_sets(const at::Tensor& sets) const;

  std::vector<CalibratedRule> rules_;
  std::vector<std::string> rule_names_, names_;
  std::vector<int64_t> superclass_of_;  // empty: sets of classes
  ProbabilityKind kind_;
};

/// The text as a JSON string, in quotation marks. Bytes of paths and names that are not UTF-8 become U+FFFD.
std::string json_text(const std::string& text);

/// Writes sets as JSON, for the files of `settrain predict` and the answers of `settrain serve`.
class SetsAsJson {
 public:
  explicit SetsAsJson(const SetMaker& maker);

  /// {"RULE": {"size": ..., "names": [...], "classes": [...], "probabilities": [...]}, ...} on one line; `sets`
  /// [rules].
  std::string operator()(const std::vector<PredictedSet>& sets) const;

 private:
  std::vector<std::string> rules_, names_;  // as JSON
};

/// [images, classes] float64, contiguous: the logarithms of the probabilities that belong to scores as rules take them.
at::Tensor log_probabilities(const at::Tensor& scores, ProbabilityKind kind);

/// The sum of the log-probabilities of a group's images.
struct GroupSum {
  std::vector<double> log_probabilities{};  // [classes]
  int64_t images = 0;

  /// Adds an image by its log-probabilities, [classes] float64.
  void add(const at::Tensor& log_probabilities_of_image);

  /// [1, classes] float64 scores whose probabilities are the geometric means over the images. Those of a softmax then
  /// add up to 1 again.
  at::Tensor scores(ProbabilityKind kind) const;
};

}  // namespace settrain
