// Sets out of scores, by several rules, with the probabilities of their members; and these sets as JSON.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "src/core/taxonomy.h"
#include "src/inference/trained_model.h"

namespace settrain {

/// Best first; equal ones in the order of their numbers.
struct PredictedSet {
  std::vector<int64_t> members;  // classes, or superclasses
  std::vector<float> probabilities;
  std::vector<int64_t> nodes{};  // places in SetMaker::node_names(), where the answer is given by nodes; by probability
  std::vector<float> node_probabilities{};
  std::vector<double> p_values{};  // [members], where they are asked for
  bool is_unknown = false;         // no class has a p-value above AnswerForm::unknown
};

/// The form of a model's answers.
struct AnswerForm {
  /// The sets hold superclasses. The probability of a superclass is that of its classes together (of sigmoids: the
  /// largest). top and error are then rules on superclasses; other rules answer with the superclasses of the classes in
  /// their sets.
  bool by_superclass = false;
  /// Each set also as the at most so many nodes of the taxonomy that cover it (NodeCover::cover()); 0: only the sets of
  /// conformal:tree, by the nodes that it allows. At a place the taxonomy has only the classes that occur there.
  int64_t roll_up = 0;
  /// A file with the classes that occur at a place, or with their prior there (read_place()); or empty. Conformal rules
  /// are then those of for_place(), and top and error leave out the classes that do not occur. `prior` may also be the
  /// name of one of the model's CalibratedPlaces, whose own rules then answer, to scores that are corrected to it.
  std::string only{}, prior{};
  bool p_values = false;
  /// An image none of whose classes has a p-value above this is said to be of no known class; 0: no image is. By the
  /// first conformal rule with a threshold of all images and without a class that is in every set.
  double unknown = 0;
};

/// Makes the sets by which a model answers.
class SetMaker {
 public:
  /// `rules`: names of rules. Without any, it is the model's default_rule() where that suits the form, or else top:5
  /// (top:N where there are only N < 5 classes). top and error need no images and are calibrated here.
  ///
  /// Throws ConfigError where a rule does not suit the model or the form, or is not calibrated, and where the model has
  /// no superclasses or no taxonomy; DataError where a file cannot be read, or names no class.
  SetMaker(const TrainedModel& model, const std::vector<std::string>& rules, const AnswerForm& form = {});

  const std::vector<CalibratedRule>& rules() const { return rules_; }
  const std::vector<std::string>& rule_names() const { return rule_names_; }
  /// The names of the classes or superclasses.
  const std::vector<std::string>& names() const { return names_; }
  const AnswerForm& form() const { return form_; }
  /// Sentences on the place: how many classes it has, names that are none, the effective number of calibration images.
  const std::vector<std::string>& place_notes() const { return place_notes_; }
  /// Whether some sets are given by nodes of the taxonomy.
  bool has_nodes() const { return tree_.has_value(); }
  /// [nodes of the taxonomy] names and ranks, those of classes first; empty where no set is given by nodes.
  const std::vector<std::string>& node_names() const { return node_names_; }
  const std::vector<std::string>& node_ranks() const { return node_ranks_; }

  /// [images][rules]; `scores` [images, classes] float32 or float64 logits on the CPU. `first_number`: the number of
  /// the first image, from which randomised rules draw.
  std::vector<std::vector<PredictedSet>> operator()(const at::Tensor& scores, int64_t first_number) const;

 private:
  void add_taxonomy(const TrainedModel& model);
  void roll_up(PredictedSet& set, const double* p, int64_t most) const;
  void go_to_place(const TrainedModel& model, const CalibratedPlace* named);
  void check_place_file(const TrainedModel& model) const;
  void check_p_values() const;
  int64_t most_nodes(const SetRule& rule) const { return form_.roll_up > 0 ? form_.roll_up : rule.nodes; }
  at::Tensor occurring_classes() const;
  at::Tensor scores_at_place(const at::Tensor& scores) const;
  at::Tensor superclass_scores(const at::Tensor& scores) const;
  at::Tensor superclass_sets(const at::Tensor& sets) const;

  std::vector<CalibratedRule> rules_;
  std::vector<std::string> rule_names_, names_;
  std::vector<int64_t> superclass_of_;  // empty: sets of classes
  ProbabilityKind kind_;
  AnswerForm form_;
  std::vector<double> prior_{};    // [classes] at the place; empty: no place
  std::vector<double> offsets_{};  // [classes] of the scores there; empty: none
  std::vector<std::string> place_notes_{};
  std::optional<NodeCover> tree_;
  std::vector<int64_t> leaf_of_;  // [classes] each class' leaf; -1 where it does not occur at the place
  std::vector<std::string> node_names_, node_ranks_;
};

/// The text as a JSON string, in quotation marks. Bytes of paths and names that are not UTF-8 become U+FFFD.
std::string json_text(const std::string& text);

/// Writes sets as JSON, for the files of `settrain predict` and the answers of `settrain serve`.
class SetsAsJson {
 public:
  explicit SetsAsJson(const SetMaker& maker);

  /// {"RULE": {"size": ..., "names": [...], "classes": [...], "probabilities": [...]}, ...} on one line; `sets`
  /// [rules]. Those given by nodes have "nodes", "node_ranks" and "node_probabilities" besides, those with p-values
  /// "p_values", and the ones that look like no known class "unknown".
  std::string operator()(const std::vector<PredictedSet>& sets) const;

 private:
  std::vector<std::string> rules_, names_, node_names_, node_ranks_;  // as JSON
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
