#include "src/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace settrain {
namespace {

struct ScheduleOptions {
  double warmup_epochs = 0;

  static config::Keys keys() {
    return {config::key("warmup_epochs", &ScheduleOptions::warmup_epochs, 0.0,
                        "Linear warm-up: epochs over which the learning rate rises to the schedule's value.")
                .at_least(0)
                .in("epochs")};
  }
};

struct MultistepOptions {
  config::Integers milestones;
  double gamma = 0;

  static config::Keys keys() {
    return {config::key("milestones", &MultistepOptions::milestones, {150, 225},
                        "Numbers of completed epochs after which the learning rate is multiplied by gamma.")
                .at_least(1)
                .in("epochs"),
            config::key("gamma", &MultistepOptions::gamma, 0.1, "Factor at each milestone.").above(0).at_most(1)};
  }
};

struct CosineOptions {
  double final_factor = 0;

  static config::Keys keys() {
    return {config::key("final_factor", &CosineOptions::final_factor, 0.0,
                        "The learning rate at the end of the run, as a fraction of optimizer.lr.")
                .at_least(0)
                .at_most(1)};
  }
};

class Constant : public Schedule {
 public:
  Constant(const RunLength& length, double warmup_epochs) : Schedule(length, warmup_epochs) {}

 protected:
  double factor_after_warmup(int64_t) const override { return 1.0; }
};

class Multistep : public Schedule {
 public:
  Multistep(const RunLength& length, double warmup_epochs, MultistepOptions options)
      : Schedule(length, warmup_epochs), options_(std::move(options)) {}

 protected:
  double factor_after_warmup(int64_t step) const override {
    const int64_t completed_epochs = step / length().steps_per_epoch;
    const auto passed = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                      [&](int64_t milestone) { return milestone <= completed_epochs; });
    return std::pow(options_.gamma, static_cast<double>(passed));
  }

 private:
  MultistepOptions options_;
};

class Cosine : public Schedule {
 public:
  Cosine(const RunLength& length, double warmup_epochs, CosineOptions options)
      : Schedule(length, warmup_epochs), options_(options) {}

 protected:
  double factor_after_warmup(int64_t step) const override {
    const double progress = static_cast<double>(step) / static_cast<double>(length().steps());
    const double wave = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    return options_.final_factor + (1.0 - options_.final_factor) * wave;
  }

 private:
  CosineOptions options_;
};

}  // namespace

Schedule::Schedule(const RunLength& length, double warmup_epochs)
    : length_(length), warmup_steps_(std::llround(warmup_epochs * static_cast<double>(length.steps_per_epoch))) {}

double Schedule::factor(int64_t step) const {
  const double factor = factor_after_warmup(step);
  if (step >= warmup_steps_) return factor;
  return factor * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
}

config::Section schedule_section() {
  return {"schedule",
          "The learning-rate schedule.",
          ScheduleOptions::keys(),
          "name",
          "constant",
          {{"constant", "Constant learning rate.", {}},
           {"multistep", "Step decay at given epochs.", MultistepOptions::keys()},
           {"cosine", "Cosine decay, updated every step.", CosineOptions::keys()}}};
}

config::Rule schedule_rule() {
  return [](const config::Config& config) {
    if (config.get<std::string>("schedule.name") != "multistep") return;
    const auto& milestones = config.get<config::Integers>("schedule.milestones");
    if (!std::is_sorted(milestones.begin(), milestones.end(), std::less_equal<>())) {
      config.fail("schedule.milestones", "milestones must rise from one to the next");
    }
  };
}

std::unique_ptr<Schedule> make_schedule(const config::Config& config, const RunLength& length) {
  const double warmup_epochs = config.read<ScheduleOptions>("schedule").warmup_epochs;
  const auto& name = config.get<std::string>("schedule.name");
  if (name == "multistep") {
    return std::make_unique<Multistep>(length, warmup_epochs, config.read<MultistepOptions>("schedule"));
  }
  if (name == "cosine") return std::make_unique<Cosine>(length, warmup_epochs, config.read<CosineOptions>("schedule"));
  return std::make_unique<Constant>(length, warmup_epochs);
}

}  // namespace settrain
