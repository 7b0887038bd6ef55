#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"
#include "src/core/error.h"
#include "src/core/values_in_sets.h"

namespace settrain {
namespace {

struct AverageKTwoHeadOptions {
  double k, alpha;
  bool negatives_include_label;
};

// alpha over the number of a sample's classes in a sum; 0 where there are none.
double share(double alpha, double classes) {
  return classes > 0 ? alpha / classes : 0;
}

// [batch, classes] bool: the `count` largest of `p` [batch, classes] over the whole batch, the labels left out.
at::Tensor candidates_of(const at::Tensor& p, const at::Tensor& labels, int64_t count) {
  const c10::NoGradGuard no_grad;
  const at::Tensor flat = without_label(p.detach(), labels).flatten();
  const at::Tensor order = std::get<1>(at::sort(flat, /*stable=*/true, /*dim=*/0, /*descending=*/true));
  at::Tensor chosen = at::zeros(flat.sizes(), flat.options().dtype(at::kBool));
  chosen.index_fill_(0, order.slice(0, 0, count), 1);
  return chosen.view(p.sizes());
}

/// The average-K loss of a model with two heads (Garcin's thesis, chapter 5). The first head learns by cross-entropy,
/// and names the second head's candidates for further classes of each sample.
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
/// accumulated. Each sample gets the terms of its own row.
class AverageKTwoHead : public Loss {
 public:
  AverageKTwoHead(const config::Config& config, const LossContext& context)
      : Loss(config, context), options_(config.read<AverageKTwoHeadOptions>("loss")) {
    if (options_.k <= static_cast<double>(context.num_classes)) return;
    config.fail("loss.k",
                fmt::format("must be at most the number of classes, {}, got {}", context.num_classes, options_.k));
  }

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& z = input.output.scores_multi;
    if (!z.defined()) throw ShapeError("scores_multi: expected [batch, classes] of a second head, got none");
    const auto classes = static_cast<double>(num_classes());
    const at::Tensor log_p = at::log_softmax(input.output.scores, 1);
    // Logarithms have the order of the probabilities, but fewer of them round to equal numbers.
    const int64_t count = values_in_sets(options_.k - 1, z.size(0), num_classes());
    const at::Tensor candidates = candidates_of(log_p, input.labels, count);

    const at::Tensor positive = -at::log_sigmoid(z), negative = -at::log_sigmoid(-z);
    at::Tensor negatives = candidates.logical_not();
    if (!options_.negatives_include_label) negatives = negatives.scatter(1, input.labels.unsqueeze(1), 0);
    // Eq. 5.9 divides by the number of candidates, eq. 5.14 by (K-1)B. The mean over the samples divides by B.
    const double mean_count = static_cast<double>(count) / static_cast<double>(z.size(0));
    const double divisor = options_.negatives_include_label ? options_.k - 1 : mean_count;
    const double of_candidates = share(options_.alpha, divisor);
    const double of_negatives = share(options_.alpha, classes - 1 - divisor);
    return of_label(positive, input.labels)
        .sub(of_label(log_p, input.labels))
        .add(positive.mul(candidates).sum(1), of_candidates)
        .add(negative.mul(negatives).sum(1), of_negatives);
  }

  AverageKTwoHeadOptions options_;
};

}  // namespace

LossEntry average_k_two_head_entry() {
  using Options = AverageKTwoHeadOptions;
  return {
      .name = "average_k_two_head",
      .help =
          "Average-K loss of two heads: cross-entropy, whose best guesses are candidates of a binary "
          "cross-entropy (thesis eq. 5.9 to 5.15).",
      .formula =
          "CE(s, y) - log sigma(z_y) - alpha/(K-1) sum_{j in S_c} log sigma(z_j) - alpha/(L-K) sum_{j not in S_c, j != y} log(1 - sigma(z_j)), where (K-1)B is whole, B images a batch",
      .keys = {config::key(
                   "k", &Options::k, 5.0,
                   "Mean size of the sets to train for; need not be whole. At most the number of classes, below "
                   "which the default is lowered. "
                   "Default: thesis, table 5.1.")
                   .at_least(1)
                   .in("classes"),
               config::key("alpha", &Options::alpha, 0.3,
                           "Weight of candidates and negatives against the label. Default: thesis, table 5.3.")
                   .at_least(0)
                   .by_epoch(),
               config::key("negatives_include_label", &Options::negatives_include_label, false,
                           "Whether the negatives include the label: true follows eq. 5.14 as printed, false eq. "
                           "5.9, which also divides by the number of candidates where (K-1)B is not whole.")},
      .requirements = {.two_heads = true},
      .make = construct<AverageKTwoHead>,
      .couples_samples = true,
      .has_sigmoids = true};
}

}  // namespace settrain
