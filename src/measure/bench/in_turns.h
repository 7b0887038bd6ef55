// Fair timing on a machine that others use too: whoever is compared is measured in turns.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace settrain {

struct TurnOptions {
  int64_t rounds = 7;
  double min_seconds = 0.005;  // of one measurement, which repeats what is shorter
  double max_seconds = 2;      // of all rounds of one contestant: a slow one takes part in the first of them alone
};

/// Measures every one of `works` once in each round, in an order that rotates, after each has run unmeasured.
/// Returns seconds of one run, [works][rounds that it took part in, at least 1]. `before_round` is told the number of
/// each round. Throws Interrupted where a signal asks to stop.
std::vector<std::vector<double>> measure_in_turns(const std::vector<std::function<void()>>& works, c10::Device device,
                                                  const TurnOptions& options,
                                                  const std::function<void(int64_t)>& before_round = {});

}  // namespace settrain
