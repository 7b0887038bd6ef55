// Every loss at several places of its parameters' ranges, and input that any of them takes.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/losses/build_loss.h"

namespace settrain::test {

inline constexpr int64_t kGridBatch = 3, kGridClasses = 9;

/// A loss with the settings "key=value key=value".
struct LossCase {
  std::string name, settings;
};

/// The ends and the middle of each parameter's range. Losses that draw noise name their num_draws.
inline std::vector<LossCase> loss_grid() {
  const std::vector<std::pair<std::string, std::vector<std::string>>> table{
      {"cross_entropy", {"", "label_smoothing=0.3"}},
      {"focal", {"gamma=0", "gamma=0.5", "gamma=1", "gamma=5"}},
      {"ldam", {"max_margin=0 scale=1", "max_margin=2 scale=0.1", "max_margin=0.5 scale=100"}},
      {"logit_adjusted", {"tau=0", "tau=0.5", "tau=4", "scale=25"}},
      {"balanced_softmax", {""}},
      {"topk_hinge",
       {"k=1", "k=4", "k=8", "k=1 smoothing.epsilon=2 smoothing.num_draws=3",
        "k=8 smoothing.epsilon=0.1 smoothing.num_draws=2"}},
      {"topk_hinge_convex", {"k=1", "k=4", "k=8", "k=4 smoothing.epsilon=0.5 smoothing.num_draws=3"}},
      {"topk_hinge_calibrated", {"k=1", "k=4", "k=8"}},
      {"topk_hinge_scaled",
       {"k=1 alpha=0", "k=4 alpha=0.3", "k=8 alpha=5", "k=4 alpha=0.3 smoothing.epsilon=0.5 smoothing.num_draws=5"}},
      {"topk_zero_one", {"k=1", "k=4", "k=8"}},
      {"smoothed_topk_hinge",
       {"k=1 tau=1 alpha=0", "k=1 tau=0.01", "k=4 tau=100 alpha=3", "k=4 tau=0.1", "k=8 tau=0.005 alpha=0.5", "k=8",
        "k=4 tau=0.1 reference_threshold=1000"}},
      {"noised_topk",
       {"k=1 num_draws=1 epsilon=0", "k=1 num_draws=3 epsilon=10", "k=4 num_draws=7 epsilon=0.2 margin=0",
        "k=4 num_draws=2 epsilon=0.2", "k=4 num_draws=2", "k=8 num_draws=5 epsilon=0.5 margin=8"}},
      {"noised_topk_imbalanced",
       {"k=1 num_draws=1 epsilon=0 max_margin=0 scale=1", "k=4 num_draws=3 epsilon=1 max_margin=3",
        "k=4 num_draws=2 epsilon=0.01 scale=0.01 scale_on=scores", "k=4 num_draws=2",
        "k=8 num_draws=5 epsilon=5 scale=20 scale_on=scores"}},
      {"exact_topk",
       {"k=1 epsilon=0", "k=4", "k=1 epsilon=0.02 nodes=64", "k=4 epsilon=0.2 nodes=128 margin=0",
        "k=8 epsilon=10 margin=4"}},
      {"exact_topk_imbalanced",
       {"k=1 epsilon=0 max_margin=0 scale=1", "k=4 epsilon=1 scale=0.1", "k=8 epsilon=0.01 max_margin=3", "k=4"}},
      {"assume_negative", {""}},
      {"bce_positive", {""}},
      {"expected_positive_regularisation", {"k=1 beta=0", "k=4 beta=1", "k=8 beta=100"}},
      {"role", {"k=1 lambda=0", "k=4 lambda=2"}},
      {"sparse_top", {""}},
      {"bce_multilabel", {""}},
      {"average_k_two_head", {"k=1", "k=2.5 alpha=3 negatives_include_label=true", "k=9 alpha=0"}}};
  std::vector<LossCase> cases;
  for (const auto& [name, grid] : table) {
    for (const std::string& settings : grid) cases.push_back({name, settings});
  }
  return cases;
}

inline std::unique_ptr<Loss> build_case(const LossCase& c, const LossContext& context = context_of(kGridClasses)) {
  std::istringstream words(c.settings);
  std::vector<std::string> settings;
  for (std::string word; words >> word;) settings.push_back(word);
  return build_loss(c.name, context, settings);
}

/// The draws of a case of loss_grid(); 0: a loss without noise.
inline int64_t draws_of(const LossCase& c) {
  const size_t at = c.settings.find("num_draws=");
  return at == std::string::npos ? 0 : std::stoll(c.settings.substr(at + 10));
}

/// Losses whose samples are coupled.
inline bool is_batch_level(const LossCase& c) {
  return builtin_losses().at(c.name).couples_samples;
}

/// Scores of both heads; those of the second are also a loss' own estimates of the labels.
inline LossInput both_heads(const at::Tensor& scores, const at::Tensor& multi, const at::Tensor& labels,
                            const at::Tensor& noise = {}) {
  LossInput input = input_of(scores, labels, noise);
  input.output.scores_multi = multi;
  input.estimate_logits = multi;
  return input;
}

/// [batch, classes] float64, and labels that differ.
inline at::Tensor grid_scores(uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({kGridBatch, kGridClasses}, at::kDouble);
}

inline at::Tensor grid_labels() {
  return at::tensor({0, 4, 8}, at::kLong);
}

}  // namespace settrain::test
