#include "losses/entries.h"

namespace settrain {

void register_builtin_losses(LossRegistry& registry) {
  registry.add(cross_entropy_entry());
  registry.add(focal_entry());
  registry.add(ldam_entry());
  registry.add(logit_adjusted_entry());
  registry.add(balanced_softmax_entry());
  registry.add(topk_hinge_entry());
  registry.add(topk_hinge_convex_entry());
  registry.add(topk_hinge_calibrated_entry());
  registry.add(topk_hinge_scaled_entry());
  registry.add(topk_zero_one_entry());
  registry.add(smoothed_topk_hinge_entry());
  registry.add(noised_topk_entry());
  registry.add(noised_topk_imbalanced_entry());
  registry.add(exact_topk_entry());
  registry.add(exact_topk_imbalanced_entry());
  registry.add(assume_negative_entry());
  registry.add(bce_positive_entry());
  registry.add(expected_positive_regularisation_entry());
  registry.add(role_entry());
  registry.add(average_k_two_head_entry());
  registry.add(sparse_top_entry());
  registry.add(bce_multilabel_entry());
}

}  // namespace settrain
