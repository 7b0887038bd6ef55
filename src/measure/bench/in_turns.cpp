#include "src/measure/bench/in_turns.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "src/core/interrupt.h"
#include "src/core/progress_bar.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

// Seconds of `repetitions` runs.
double seconds_of(const std::function<void()>& work, int64_t repetitions, c10::Device device) {
  using Clock = std::chrono::steady_clock;
  wait_for(device);
  const auto start = Clock::now();
  for (int64_t i = 0; i < repetitions; ++i) {
    throw_if_interrupted();
    work();
  }
  wait_for(device);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Seconds of one run, roughly. The first run also loads code and takes memory, and others use the machine too.
double least_seconds(const std::function<void()>& work, double enough, c10::Device device) {
  constexpr int kRuns = 4;
  double least = seconds_of(work, 1, device);
  for (int i = 1; i < kRuns && least < enough; ++i) least = std::min(least, seconds_of(work, 1, device));
  return std::max(least, 1e-7);
}

struct Plan {
  int64_t repetitions;  // in a round
  int64_t rounds;
};

Plan plan(const std::function<void()>& work, const TurnOptions& options, c10::Device device) {
  const double once = least_seconds(work, options.min_seconds, device);
  const double repetitions = std::max(1.0, std::ceil(options.min_seconds / once));
  const double rounds =
      std::clamp(std::floor(options.max_seconds / (repetitions * once)), 1.0, static_cast<double>(options.rounds));
  return {static_cast<int64_t>(repetitions), static_cast<int64_t>(rounds)};
}

}  // namespace

std::vector<std::vector<double>> measure_in_turns(const std::vector<std::function<void()>>& works, c10::Device device,
                                                  const TurnOptions& options,
                                                  const std::function<void(int64_t)>& before_round) {
  // Trying everything once and each round count alike in the bar.
  ProgressBar bar;
  const int64_t parts = static_cast<int64_t>(works.size()) * (options.rounds + 1);
  int64_t done = 0;
  const auto show_progress = [&] {
    bar.update({.stage = "[bench] measurements", .done = done++, .total = parts, .after = 0, .figures = ""});
  };
  std::vector<Plan> plans;
  for (const auto& work : works) {
    show_progress();
    plans.push_back(plan(work, options, device));
  }
  std::vector<std::vector<double>> seconds(works.size());
  for (int64_t round = 0; round < options.rounds; ++round) {
    if (before_round) before_round(round);
    // The first rounds' starts are spread over all of the works.
    const size_t start = works.size() * static_cast<size_t>(round) / static_cast<size_t>(options.rounds);
    for (size_t i = 0; i < works.size(); ++i) {
      const size_t who = (start + i) % works.size();
      show_progress();
      if (round >= plans[who].rounds) continue;
      const int64_t repetitions = plans[who].repetitions;
      seconds[who].push_back(seconds_of(works[who], repetitions, device) / static_cast<double>(repetitions));
    }
  }
  bar.hide();
  return seconds;
}

}  // namespace settrain
