#include "losses/average_k_two_head.h"

#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "losses/ops/score_ops.h"
#include "src/core/error.h"
#include "src/core/values_in_sets.h"

namespace settrain {
namespace {

// alpha by the number of a sample's classes in a sum; there may be none.
double share(double alpha, double classes) {
  return classes > 0 ? alpha / classes : 0;
}

}  // namespace

at::Tensor average_k_candidates(const at::Tensor& p, const at::Tensor& labels, int64_t count) {
  const c10::NoGradGuard no_grad;
  const at::Tensor flat = without_label(p.detach(), labels).flatten();
  const at::Tensor order = std::get<1>(at::sort(flat, /*stable=*/true, /*dim=*/0, /*descending=*/true));
  at::Tensor chosen = at::zeros(flat.sizes(), flat.options().dtype(at::kBool));
  chosen.index_fill_(0, order.slice(0, 0, count), 1);
  return chosen.view(p.sizes());
}

at::Tensor AverageKTwoHead::per_sample(const LossInput& input) {
  const at::Tensor& z = input.output.scores_multi;
  if (!z.defined()) throw ShapeError("scores_multi: expected [batch, classes] of a second head, got none");
  const auto classes = static_cast<double>(num_classes());
  const at::Tensor log_p = at::log_softmax(input.output.scores, 1);
  // Their order is that of the probabilities, which round to equal ones more often.
  const int64_t count = values_in_sets(options_.k - 1, z.size(0), num_classes());
  const at::Tensor candidates = average_k_candidates(log_p, input.labels, count);

  const at::Tensor positive = -at::log_sigmoid(z), negative = -at::log_sigmoid(-z);
  at::Tensor negatives = candidates.logical_not();
  if (!options_.negatives_include_label) negatives = negatives.scatter(1, input.labels.unsqueeze(1), 0);
  // Eq. 5.9 divides by the candidates that there are, eq. 5.14 by (K-1)B. The mean over the samples does the B.
  const double mean_count = static_cast<double>(count) / static_cast<double>(z.size(0));
  const double divisor = options_.negatives_include_label ? options_.k - 1 : mean_count;
  const double of_candidates = share(options_.alpha, divisor);
  const double of_negatives = share(options_.alpha, classes - 1 - divisor);
  return of_label(positive, input.labels)
      .sub(of_label(log_p, input.labels))
      .add(positive.mul(candidates).sum(1), of_candidates)
      .add(negative.mul(negatives).sum(1), of_negatives);
}

LossEntry average_k_two_head_entry() {
  using Options = AverageKTwoHeadOptions;
  return {
      .name = "average_k_two_head",
      .help =
          "Average-K loss of two heads: cross-entropy, whose best guesses are candidates of a binary "
          "cross-entropy (thesis eq. 5.9 to 5.15).",
      .formula =
          "CE(s, y) - log sigma(z_y) - alpha/(K-1) sum_{j in S_c} log sigma(z_j) - alpha/(L-K) sum_{j not in S_c, j != y} log(1 - sigma(z_j)), where (K-1)B is whole, B images a batch",
      .keys = {config::key("k", &Options::k, 5.0,
                           "Mean size of the sets to train for; need not be whole. At most the number of classes. "
                           "Default: thesis, table 5.1.")
                   .at_least(1)
                   .in("classes"),
               config::key("alpha", &Options::alpha, 0.3,
                           "Weight of candidates and negatives against the label. Default: thesis, table 5.3.")
                   .at_least(0),
               config::key("negatives_include_label", &Options::negatives_include_label, false,
                           "Whether the negatives include the label: true follows eq. 5.14 as printed, false eq. "
                           "5.9, which also divides by the number of candidates where (K-1)B is not whole.")},
      .requirements = {.two_heads = true},
      .make =
          [](const config::Config& config, const LossContext& context) {
            const auto options = config.read<Options>("loss");
            if (options.k > static_cast<double>(context.num_classes)) {
              config.fail("loss.k", fmt::format("must be at most the number of classes, {}, got {}",
                                                context.num_classes, options.k));
            }
            return std::make_unique<AverageKTwoHead>(context.num_classes, options);
          },
      .couples_samples = true,
      .has_sigmoids = true};
}

}  // namespace settrain
