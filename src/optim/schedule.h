// How the learning rate changes over a run.
#pragma once

#include <cstdint>
#include <memory>

#include "src/config/config.h"

namespace settrain {

/// A run's length, in optimizer steps.
struct RunLength {
  int64_t epochs;
  int64_t steps_per_epoch;

  int64_t steps() const { return epochs * steps_per_epoch; }
};

/// A factor on optimizer.lr for every step, a function of the step alone.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// `step` counts optimizer steps from 0. During the first `warmup_epochs` the factor rises linearly, from 1/n of the
  /// schedule's at the first of its n steps to n/n at the last.
  double factor(int64_t step) const;

 protected:
  Schedule(const RunLength& length, double warmup_epochs);
  virtual double factor_after_warmup(int64_t step) const = 0;
  const RunLength& length() const { return length_; }

 private:
  RunLength length_;
  int64_t warmup_steps_;
};

/// The section `schedule`: variants constant, multistep and cosine.
config::Section schedule_section();

/// Rules on its keys: milestones rise.
config::Rule schedule_rule();

std::unique_ptr<Schedule> make_schedule(const config::Config& config, const RunLength& length);

}  // namespace settrain
