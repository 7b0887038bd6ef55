// The measurements of losses, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "src/measure/bench/loss_bench.h"
#include "src/measure/bench/smoothed_bench.h"

namespace settrain {

/// Tables that were not asked for are empty.
struct LossReport {
  at::Device device = at::kCPU;
  LossBenchOptions options{};
  std::vector<LossTimes> losses{}, scores{}, growth_in_k{}, growth_in_classes{};
  std::vector<DeviceTime> device_times{};
  std::vector<SmoothedTimes> smoothed{};
  std::vector<SmoothedStability> stability{};
  std::string model{};  // of `steps`
  StepShares steps{};
};

/// Every figure is the median over the rounds.
std::string loss_report_text(const LossReport& report);

/// The same with the figures of each round.
std::string loss_report_json(const LossReport& report);

}  // namespace settrain
