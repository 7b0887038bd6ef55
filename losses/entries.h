// The registered losses, by their files.
#pragma once

#include "losses/loss.h"

namespace settrain {

// average_k_two_head.cpp
LossEntry average_k_two_head_entry();
// binary_cross_entropy.cpp
LossEntry assume_negative_entry();
LossEntry bce_multilabel_entry();
LossEntry bce_positive_entry();
LossEntry expected_positive_regularisation_entry();
// cross_entropy.cpp
LossEntry cross_entropy_entry();
// exact_topk.cpp
LossEntry exact_topk_entry();
LossEntry exact_topk_imbalanced_entry();
// focal.cpp
LossEntry focal_entry();
// ldam.cpp
LossEntry ldam_entry();
// logit_adjusted.cpp
LossEntry balanced_softmax_entry();
LossEntry logit_adjusted_entry();
// noised_topk.cpp
LossEntry noised_topk_entry();
LossEntry noised_topk_imbalanced_entry();
// role.cpp
LossEntry role_entry();
// smoothed_topk_hinge.cpp
LossEntry smoothed_topk_hinge_entry();
// sparse_top.cpp
LossEntry sparse_top_entry();
// topk_hinges.cpp
LossEntry topk_hinge_entry();
LossEntry topk_hinge_calibrated_entry();
LossEntry topk_hinge_convex_entry();
LossEntry topk_hinge_scaled_entry();
LossEntry topk_zero_one_entry();

}  // namespace settrain
