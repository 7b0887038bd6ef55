// Balanced softmax: Ren et al., NeurIPS 2020.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, -log(n_y e^{s_y} / sum_j n_j e^{s_j}), with n_j the training images of class j (Ren et al., "Balanced
/// meta-softmax for long-tailed visual recognition", NeurIPS 2020, eq. 3 and 4): LogitAdjusted with tau 1.
LossEntry balanced_softmax_entry();

}  // namespace settrain
