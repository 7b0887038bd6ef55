// How much the runs of a table or a figure have to compute, and what they need, without its data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/settrain/command_line.h"
#include "src/core/progress_bar.h"
#include "src/papers/design/run_design.h"

namespace settrain {

/// The settings "key=value" of a training step on random images: two steps with the same take the same time.
using StepKind = std::vector<std::string>;

struct DesignCost {
  int64_t runs = 0;
  bool is_known = true;                 // false where data are of the user's own: the next two are then not of all runs
  std::map<StepKind, double> images{};  // of all runs; an evaluated one counts as a third of a trained one
  double multiply_adds = 0;             // of all runs; a trained image takes three times those of a forward pass
  std::vector<std::string> data{}, weights{};  // that they need, there or not
  std::vector<std::string> missing{};          // of these, a sentence each

  /// "cifar100 (data/cifar-100-binary); weights/resnet18.pth and 9 more".
  std::string needs() const;
};

class DesignCosts {
 public:
  explicit DesignCosts(const CommandLine& line) : line_(line) {}

  /// Counts; measures nothing.
  DesignCost count(const RunDesign& design, const std::vector<WantedCell>& cells);

  /// Seconds of all runs one after the other, from a few steps of each kind, measured now on --device.
  double measure_seconds(const DesignCost& cost, ProgressBar& bar) const;

  /// Multiply-adds a second in training steps of ResNet-18, measured now on --device.
  double measure_speed(ProgressBar& bar) const;

 private:
  double seconds_per_image(const StepKind& kind, ProgressBar& bar) const;

  const CommandLine& line_;
  std::map<StepKind, double> forward_;  // multiply-adds of one image's forward pass
};

}  // namespace settrain
