#include "losses/assume_negative.h"
#include "losses/average_k_two_head.h"
#include "losses/balanced_softmax.h"
#include "losses/bce_multilabel.h"
#include "losses/bce_positive.h"
#include "losses/cross_entropy.h"
#include "losses/exact_topk.h"
#include "losses/expected_positive_regularisation.h"
#include "losses/focal.h"
#include "losses/ldam.h"
#include "losses/logit_adjusted.h"
#include "losses/loss.h"
#include "losses/noised_topk.h"
#include "losses/noised_topk_imbalanced.h"
#include "losses/role.h"
#include "losses/smoothed_topk_hinge.h"
#include "losses/sparse_top.h"
#include "losses/topk_hinge.h"
#include "losses/topk_hinge_calibrated.h"
#include "losses/topk_hinge_convex.h"
#include "losses/topk_hinge_scaled.h"
#include "losses/topk_zero_one.h"

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
