#include "src/measure/bench/smoothed_bench.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "losses/make_loss.h"
#include "src/core/interrupt.h"
#include "src/measure/bench/smoothed_algorithms.h"
#include "src/measure/cost/throughput.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

constexpr const char* kOurs = "smoothed_topk_hinge";
constexpr const char* kSummation = "summation";
constexpr const char* kDivision = "divide and conquer";

LossCase case_of(const LossBenchOptions& options, int64_t classes) {
  LossCase made = options.base;
  made.loss = kOurs;
  made.method = LossMethod::kFast;
  made.classes = classes;
  made.scores_sd = options.scores_sds.front();
  return made;
}

// One of the algorithms and the times of its runs.
struct Contestant {
  std::string algorithm;
  int64_t classes;
  LossSubject subject;
  std::function<void(Contestant&, PhaseTimer&)> run;
  std::vector<StepPhases> runs{};

  void measure() {
    PhaseTimer timer(&runs.emplace_back(), subject.input().labels.device());
    run(*this, timer);
  }
  double median_of(double StepPhases::*phase) const {
    std::vector<double> seconds;
    for (const StepPhases& run : runs) seconds.push_back(run.*phase);
    return median(seconds);
  }
};

// Forward and backward of one of the paper's algorithms, with the settings of the loss' defaults.
std::function<void(Contestant&, PhaseTimer&)> run_of(SmoothedAlgorithm algorithm, int64_t k) {
  return [algorithm, k](Contestant& contestant, PhaseTimer& timer) {
    const LossInput& input = contestant.subject.input();
    const at::Tensor& scores = input.output.scores;
    scores.mutable_grad().reset();
    const c10::AutoGradMode gradients(algorithm != SmoothedAlgorithm::kSummation);
    const at::Tensor loss = smoothed_hinge_by(algorithm, scores, input.labels, k, /*tau=*/1, /*alpha=*/1);
    timer.end(&StepPhases::forward);
    if (algorithm == SmoothedAlgorithm::kSummation) return;
    loss.sum().backward();
    timer.end(&StepPhases::backward);
  };
}

void run_ours(Contestant& contestant, PhaseTimer& timer) {
  const LossValue value = contestant.subject.forward();
  timer.end(&StepPhases::forward);
  contestant.subject.backward(value);
  timer.end(&StepPhases::backward);
}

bool all_finite(const at::Tensor& values) {
  return values.isfinite().all().item<bool>();
}

}  // namespace

std::vector<SmoothedTimes> measure_smoothed(const LossRegistry& registry, const LossBenchOptions& options,
                                            at::Device device) {
  std::deque<Contestant> contestants;
  std::vector<std::function<void()>> works;
  for (const int64_t classes : {100, 1000, 10000}) {
    const LossCase what = case_of(options, classes);
    if (what.k + 1 >= classes) continue;
    const auto add = [&](const char* algorithm, std::function<void(Contestant&, PhaseTimer&)> run) {
      contestants.push_back({algorithm, classes, LossSubject(registry, what, device), std::move(run)});
      works.emplace_back([contestant = &contestants.back()] { contestant->measure(); });
    };
    add(kSummation, run_of(SmoothedAlgorithm::kSummation, what.k));
    add("divide and conquer, autograd", run_of(SmoothedAlgorithm::kAutograd, what.k));
    add("divide and conquer, their backward", run_of(SmoothedAlgorithm::kCustomBackward, what.k));
    add(kOurs, run_ours);
  }
  measure_in_turns(works, device, options.turns, [&](int64_t round) {
    if (round > 0) return;
    for (Contestant& contestant : contestants) contestant.runs.clear();  // what came before was warm-up
  });
  std::vector<SmoothedTimes> all;
  for (const Contestant& contestant : contestants) {
    all.push_back({contestant.algorithm, contestant.classes, contestant.median_of(&StepPhases::forward), {}});
    if (contestant.algorithm != kSummation) all.back().backward = contestant.median_of(&StepPhases::backward);
  }
  return all;
}

bool is_smoothed_stable(const LossRegistry& registry, const std::string& algorithm, const LossCase& what, double tau,
                        at::ScalarType dtype, at::Device device) {
  const c10::NoGradGuard no_grad;
  const LossSubject subject(registry, what, device);
  LossInput input = subject.input();
  input.output.scores = input.output.scores.detach().to(dtype);
  if (algorithm == "settrain") {
    const LossContext context{.num_classes = what.classes, .class_counts = {}, .train_ids = {}, .train_labels = {}};
    const auto config = loss_config(registry, what, {fmt::format("loss.tau={}", tau)});
    return all_finite((*make_loss(registry, config, context))(input).per_sample);
  }
  const at::Tensor x = scaled_others(input.output.scores, input.labels, what.k, tau);
  return all_finite(algorithm == "summation" ? by_summation(x.exp(), what.k) : by_division(x, what.k));
}

std::vector<SmoothedStability> check_smoothed_stability(const LossRegistry& registry, const LossBenchOptions& options,
                                                        at::Device device) {
  const LossCase what = case_of(options, options.base.classes);
  std::vector<SmoothedStability> all;
  for (const auto& [name, algorithm] :
       {std::pair{kSummation, "summation"}, std::pair{kDivision, "divide_and_conquer"}, std::pair{kOurs, "settrain"}}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      SmoothedStability row{name, dtype, {}};
      for (const double tau : kStabilityTaus) {
        row.is_stable.push_back(is_smoothed_stable(registry, algorithm, what, tau, dtype, device));
      }
      all.push_back(std::move(row));
    }
  }
  return all;
}

SmoothedSeconds time_smoothed(const LossRegistry& registry, const std::string& algorithm, const LossCase& what,
                              int64_t runs, at::Device device, const std::function<void()>& after_run) {
  std::function<void(Contestant&, PhaseTimer&)> run = run_ours;
  if (algorithm == "summation") run = run_of(SmoothedAlgorithm::kSummation, what.k);
  if (algorithm == "divide_and_conquer") run = run_of(SmoothedAlgorithm::kAutograd, what.k);
  if (algorithm == "custom_backward") run = run_of(SmoothedAlgorithm::kCustomBackward, what.k);
  Contestant contestant{algorithm, what.classes, LossSubject(registry, what, device), std::move(run)};
  contestant.measure();
  contestant.runs.clear();  // what came before was warm-up
  StepPhases sum;
  for (int64_t i = 0; i < runs; ++i) {
    throw_if_interrupted();
    contestant.measure();
    after_run();
  }
  for (const StepPhases& run : contestant.runs) {
    sum.forward += run.forward;
    sum.backward += run.backward;
  }
  SmoothedSeconds seconds{sum.forward / static_cast<double>(runs), {}};
  if (algorithm != "summation") seconds.backward = sum.backward / static_cast<double>(runs);
  return seconds;
}

}  // namespace settrain
