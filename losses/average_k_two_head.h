// The average-K loss of a model with two heads: Garcin's thesis, chapter 5.
#pragma once

#include "losses/loss.h"

namespace settrain {

struct AverageKTwoHeadOptions {
  double k, alpha;
  bool negatives_include_label;
};

/// The first head learns by cross-entropy, and names the second head's candidates for further classes of each sample.
/// With p the softmax of the first head's scores, z the second head's, sigma the logistic function, over a batch of B
/// samples: S_c is the set of the (K-1)B largest p_ij with j != y_i, and
///
///     (1/B) sum_i -log p_{i,y_i}  -  (1/B) sum_i log sigma(z_{i,y_i})
///       - alpha/|S_c| sum_{(i,j) in S_c} log sigma(z_ij)
///       - alpha/((L-1)B - |S_c|) sum_{(i,j): j != y_i, not in S_c} log(1 - sigma(z_ij))
///
/// (thesis eq. 5.9 to 5.13): each sum is divided by the number of its terms. With `negatives_include_label` the last
/// sum runs over j = y_i too, and the denominators are (K-1)B and (L-K)B: eq. 5.14 as printed. K need not be whole:
/// |S_c| is (K-1)B rounded down, 10 for K = 2.3 and B = 8, and the denominators of 5.9 and 5.14 then differ. A sum over
/// nothing (K = 1, K = L) is 0. Candidates with equal p: the lower row first, then the lower class. The choice of
/// candidates has no gradient. The samples of a batch are coupled; B is the batch that one call sees, whatever is
/// accumulated. Terms are shared out to the samples that they belong to.
class AverageKTwoHead : public Loss {
 public:
  AverageKTwoHead(int64_t num_classes, const AverageKTwoHeadOptions& options) : Loss(num_classes), options_(options) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  AverageKTwoHeadOptions options_;
};

/// [batch, classes] bool: the `count` largest of `p` [batch, classes] over the whole batch, the labels left out.
at::Tensor average_k_candidates(const at::Tensor& p, const at::Tensor& labels, int64_t count);

LossEntry average_k_two_head_entry();

}  // namespace settrain
