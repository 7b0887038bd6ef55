#include "src/measure/bench/smoothed_bench.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "losses/make_loss.h"
#include "src/core/interrupt.h"
#include "src/measure/cost/throughput.h"

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Stands for log 0: finite even where many are added up in float32, so that no gradient is NaN.
constexpr double kLogOfZero = -1e30;

// [terms, batch, n] polynomials to their products in pairs, up to that degree. All in logarithms.
at::Tensor multiply_pairs(at::Tensor p, int64_t degree) {
  if (p.size(2) % 2 == 1) {
    at::Tensor constant_one = at::full({p.size(0), p.size(1), 1}, kLogOfZero, p.options().requires_grad(false));
    constant_one.select(0, 0).zero_();
    p = at::cat({p, constant_one}, 2);
  }
  const at::Tensor a = p.slice(2, 0, std::nullopt, 2), b = p.slice(2, 1, std::nullopt, 2).flip(0);
  const int64_t d = p.size(0) - 1;
  std::vector<at::Tensor> coefficients;
  for (int64_t m = 0; m <= std::min(2 * d, degree); ++m) {
    const int64_t low = std::max<int64_t>(0, m - d), high = std::min(m, d);
    // a[low .. high] with b[m - low .. m - high], which lie reversed.
    coefficients.push_back(at::logsumexp(a.slice(0, low, high + 1) + b.slice(0, d - m + low, d - m + high + 1), {0}));
  }
  return at::stack(coefficients, 0);
}

// How far the approximation of Definition 1 goes, where there are `n` elements.
int64_t order(int64_t k, int64_t n) {
  return std::min(std::max<int64_t>(1, std::lround(0.2 * static_cast<double>(k))), n - k);
}

// [batch, n] logarithms of the approximation of delta_j of order p.
at::Tensor approximation(const at::Tensor& x, const at::Tensor& log_sigma, int64_t j, int64_t p) {
  const at::Tensor first = log_sigma.select(0, j).unsqueeze(1);
  at::Tensor sum = at::zeros_like(x);
  for (int64_t q = 0; q <= p; ++q) {
    const at::Tensor term = (log_sigma.select(0, j + q).unsqueeze(1) - first - x * static_cast<double>(q)).exp();
    sum = q % 2 == 0 ? sum + term : sum - term;
  }
  return first - x + sum.clamp_min(std::numeric_limits<float>::min()).log();
}

// [batch, n] the derivatives of log sigma_(k-1) and log sigma_k by x.
std::vector<at::Tensor> derivatives(const at::Tensor& x, const at::Tensor& log_sigma, int64_t k, int64_t p) {
  const double precision =
      x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const auto derivative = [&](const at::Tensor& log_delta, int64_t j) {
    return (x + log_delta - log_sigma.select(0, j).unsqueeze(1)).exp();
  };
  std::vector<at::Tensor> result{at::zeros_like(x)};  // sigma_0 is 1
  at::Tensor log_delta = at::zeros_like(x), unstable = at::zeros_like(x, at::kBool);
  result.push_back(derivative(log_delta, 1));
  for (int64_t j = 2; j <= k; ++j) {
    const at::Tensor minuend = log_sigma.select(0, j - 1).unsqueeze(1);
    const at::Tensor difference = -(x + log_delta - minuend).expm1();  // relative
    unstable = unstable.logical_or(difference.lt(std::sqrt(precision)));
    const at::Tensor exact = minuend + difference.clamp_min(precision).log();
    log_delta = approximation(x, log_sigma, j, p).where(unstable, exact);
    result.push_back(derivative(log_delta, j));
  }
  return {result[static_cast<size_t>(k - 1)], result[static_cast<size_t>(k)]};
}

// The logarithms for degrees k - 1 and k by by_division(), [batch, n] to [2, batch]. The gradient is that of Algorithm
// 2: delta_j,i = sigma_(j-1) - e_i delta_(j-1),i, in logarithms. Where the two terms agree so closely that their
// difference is lost, the approximation of order p = 0.2 k, rounded and at least 1, stands for it (Definition 1): sum_q
// (-1)^q sigma_(j+q) / e_i^(q+1). The paper does not say how closely; here it is a relative difference below the root
// of the dtype's precision.
struct CustomBackward : torch::autograd::Function<CustomBackward> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t k) {
    const int64_t p = order(k, x.size(1));
    const at::Tensor log_sigma = by_division(x, k + p);
    context->save_for_backward({x, log_sigma});
    context->saved_data["k"] = k;
    context->saved_data["p"] = p;
    return log_sigma.slice(0, k - 1, k + 1).clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const variable_list saved = context->get_saved_variables();
    const auto slopes =
        derivatives(saved[0], saved[1], context->saved_data["k"].toInt(), context->saved_data["p"].toInt());
    return {outer[0].select(0, 0).unsqueeze(1) * slopes[0] + outer[0].select(0, 1).unsqueeze(1) * slopes[1],
            at::Tensor()};
  }
};

constexpr const char* kLoss = "smoothed_topk_hinge";

LossCase smoothed_case(const LossBenchOptions& options, int64_t classes) {
  LossCase made = options.base;
  made.loss = kLoss;
  made.classes = classes;
  made.scores_sd = options.scores_sds.front();
  return made;
}

SmoothedAlgorithm algorithm_named(const std::string& name) {
  const auto found = std::find(std::begin(kSmoothedAlgorithms), std::end(kSmoothedAlgorithms), name);
  return static_cast<SmoothedAlgorithm>(found - std::begin(kSmoothedAlgorithms));
}

// One of the algorithms, and the times of its runs.
struct Contestant {
  SmoothedAlgorithm algorithm;
  LossCase what;
  LossSubject subject;
  std::vector<StepPhases> runs{};

  // Forward and backward, with the settings of the loss's defaults.
  void measure() {
    const LossInput& input = subject.input();
    PhaseTimer timer(&runs.emplace_back(), input.labels.device());
    if (algorithm == SmoothedAlgorithm::kOurs) {
      const LossValue value = subject.forward();
      timer.end(&StepPhases::forward);
      subject.backward(value);
      timer.end(&StepPhases::backward);
      return;
    }
    const at::Tensor& scores = input.output.scores;
    scores.mutable_grad().reset();
    const c10::AutoGradMode gradients(algorithm != SmoothedAlgorithm::kSummation);
    const at::Tensor loss = smoothed_hinge_by(algorithm, scores, input.labels, what.k, /*tau=*/1, /*alpha=*/1);
    timer.end(&StepPhases::forward);
    if (algorithm == SmoothedAlgorithm::kSummation) return;
    loss.sum().backward();
    timer.end(&StepPhases::backward);
  }

  // A statistic of the runs' seconds.
  SmoothedSeconds seconds(double (*statistic)(std::vector<double>)) const {
    const auto of = [&](double StepPhases::*phase) {
      std::vector<double> all;
      for (const StepPhases& run : runs) all.push_back(run.*phase);
      return statistic(all);
    };
    SmoothedSeconds result{of(&StepPhases::forward), {}};
    if (algorithm != SmoothedAlgorithm::kSummation) result.backward = of(&StepPhases::backward);
    return result;
  }
};

}  // namespace

at::Tensor by_summation(const at::Tensor& e, int64_t degree) {
  const c10::NoGradGuard no_grad;
  const int64_t n = e.size(1);
  const at::Tensor elements = e.t().contiguous();
  at::Tensor sigma = at::zeros({degree + 1, e.size(0)}, e.options().requires_grad(false));
  at::Tensor buffer = at::zeros_like(sigma);
  sigma.select(0, 0).fill_(1);
  sigma.select(0, 1).copy_(elements.select(0, 0));
  for (int64_t i = 2; i <= n; ++i) {
    const int64_t high = std::min(i, degree);
    at::Tensor products = buffer.slice(0, 1, high + 1);
    at::mul_out(products, sigma.slice(0, 0, high), elements.select(0, i - 1));
    sigma.slice(0, 1, high + 1).add_(products);
  }
  return sigma;
}

at::Tensor by_division(const at::Tensor& x, int64_t degree) {
  at::Tensor p = at::stack({-x, at::zeros_like(x)}, 0);
  while (p.size(2) > 1) p = multiply_pairs(p, degree);
  return p.squeeze(2) + x.sum(1);
}

at::Tensor scaled_others(const at::Tensor& scores, const at::Tensor& labels, int64_t k, double tau) {
  const at::Tensor index = at::arange(scores.size(1) - 1, labels.options());
  const at::Tensor others = index.unsqueeze(0) + index.unsqueeze(0).ge(labels.unsqueeze(1));
  return scores.gather(1, others).div(static_cast<double>(k) * tau);
}

at::Tensor smoothed_hinge_by(SmoothedAlgorithm algorithm, const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                             double tau, double alpha) {
  const at::Tensor x = scaled_others(scores, labels, k, tau);
  at::Tensor log_sigma;  // [2, batch], of degrees k - 1 and k
  switch (algorithm) {
    case SmoothedAlgorithm::kSummation:
      log_sigma = by_summation(x.exp(), k).slice(0, k - 1, k + 1).log();
      break;
    case SmoothedAlgorithm::kAutograd:
      log_sigma = by_division(x, k).slice(0, k - 1, k + 1);
      break;
    case SmoothedAlgorithm::kCustomBackward:
      log_sigma = CustomBackward::apply(x, k);
      break;
    case SmoothedAlgorithm::kOurs:
      throw std::logic_error("not an algorithm of the paper");
  }
  const at::Tensor of_label = scores.gather(1, labels.unsqueeze(1)).squeeze(1).div(static_cast<double>(k) * tau);
  const at::Tensor z = log_sigma.select(0, 1) - log_sigma.select(0, 0) - of_label + alpha / tau;
  return at::logaddexp(z, at::zeros_like(z)).mul(tau);
}

std::vector<SmoothedTimes> measure_smoothed(const LossRegistry& registry, const LossBenchOptions& options,
                                            at::Device device) {
  std::deque<Contestant> contestants;
  std::vector<std::function<void()>> works;
  for (const int64_t classes : {100, 1000, 10000}) {
    const LossCase what = smoothed_case(options, classes);
    if (what.k + 1 >= classes) continue;
    for (const auto algorithm : {SmoothedAlgorithm::kSummation, SmoothedAlgorithm::kAutograd,
                                 SmoothedAlgorithm::kCustomBackward, SmoothedAlgorithm::kOurs}) {
      contestants.push_back({algorithm, what, LossSubject(registry, what, device)});
      works.emplace_back([contestant = &contestants.back()] { contestant->measure(); });
    }
  }
  measure_in_turns(works, device, options.turns, [&](int64_t round) {
    if (round > 0) return;
    for (Contestant& contestant : contestants) contestant.runs.clear();  // what came before was warm-up
  });
  constexpr const char* kRows[] = {"summation", "divide and conquer, autograd", "divide and conquer, their backward",
                                   kLoss};
  std::vector<SmoothedTimes> all;
  for (const Contestant& contestant : contestants) {
    all.push_back(
        {kRows[static_cast<size_t>(contestant.algorithm)], contestant.what.classes, contestant.seconds(median)});
  }
  return all;
}

SmoothedSeconds time_smoothed(const LossRegistry& registry, const std::string& algorithm, const LossCase& what,
                              int64_t runs, at::Device device, const std::function<void()>& after_run) {
  Contestant contestant{algorithm_named(algorithm), what, LossSubject(registry, what, device)};
  contestant.measure();
  contestant.runs.clear();  // what came before was warm-up
  for (int64_t i = 0; i < runs; ++i) {
    throw_if_interrupted();
    contestant.measure();
    after_run();
  }
  return contestant.seconds([](std::vector<double> seconds) {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  });
}

namespace {

// `what`: of the loss; its sizes are those of the batch. The range of loss.tau does not matter here.
bool is_stable(const LossRegistry& registry, const std::string& algorithm, const LossCase& what,
               const ScoreBatch& batch, double tau) {
  const c10::NoGradGuard no_grad;
  const auto is_finite = [](const at::Tensor& values) { return values.isfinite().all().item<bool>(); };
  const SmoothedAlgorithm chosen = algorithm_named(algorithm);
  if (chosen == SmoothedAlgorithm::kOurs) {
    const LossContext context{
        .num_classes = batch.scores.size(1), .class_counts = {}, .train_ids = {}, .train_labels = {}};
    LossInput input;
    input.output.scores = batch.scores;
    input.labels = batch.labels;
    const auto config = loss_config(registry, what).with("loss.tau", tau);
    return is_finite((*make_loss(registry, config, context))(input).per_sample);
  }
  const at::Tensor x = scaled_others(batch.scores, batch.labels, what.k, tau);
  // Sums that are 0, since all their terms are too small, have no logarithm: that is no result either.
  return is_finite(chosen == SmoothedAlgorithm::kSummation ? by_summation(x.exp(), what.k).log()
                                                           : by_division(x, what.k));
}

ScoreBatch random_batch(const LossRegistry& registry, const LossCase& what, at::Device device) {
  const LossSubject subject(registry, what, device);
  return {subject.input().output.scores.detach(), subject.input().labels};
}

}  // namespace

bool is_smoothed_stable(const LossRegistry& registry, const std::string& algorithm, const LossCase& what, double tau,
                        at::ScalarType dtype, at::Device device) {
  ScoreBatch batch = random_batch(registry, what, device);
  batch.scores = batch.scores.to(dtype);
  return is_stable(registry, algorithm, what, batch, tau);
}

std::vector<SmoothedStability> check_smoothed_stability(const LossRegistry& registry, const LossBenchOptions& options,
                                                        const std::optional<ScoreBatch>& batch, at::Device device) {
  const LossCase what = smoothed_case(options, batch ? batch->scores.size(1) : options.base.classes);
  const ScoreBatch given = batch ? *batch : random_batch(registry, what, device);
  std::vector<SmoothedStability> all;
  for (const auto& [row, algorithm] :
       {std::pair{"summation", "summation"}, {"divide and conquer", "divide_and_conquer"}, {kLoss, "settrain"}}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const ScoreBatch cast{given.scores.to(device, dtype), given.labels.to(device)};
      SmoothedStability& found = all.emplace_back(SmoothedStability{row, dtype, {}});
      for (const double tau : kStabilityTaus) {
        found.is_stable.push_back(is_stable(registry, algorithm, what, cast, tau));
      }
      for (int exponent = 1; exponent >= -36; --exponent) {
        const double tau = std::pow(10.0, exponent);
        if (!is_stable(registry, algorithm, what, cast, tau)) break;
        found.smallest_tau = tau;
      }
    }
  }
  return all;
}

}  // namespace settrain
