// How long the runs of a table or a figure will take, and what they need, without its data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/settrain/command_line.h"
#include "src/core/progress_bar.h"
#include "src/papers/design/run_design.h"

namespace settrain {

struct DesignCost {
  int64_t runs = 0;
  std::optional<double> seconds{};  // of all runs one after the other; nothing where data are of the user's own
  std::vector<std::string> data{}, weights{};  // that they need, there or not
  std::vector<std::string> missing{};          // of these, a sentence each

  /// "cifar100 (data/cifar-100-binary); weights/resnet18.pth and 9 more".
  std::string needs() const;
};

/// Measures training steps on made-up images of the right size, once for each kind of step, and counts them. What an
/// evaluated image takes is taken for a third of what a trained one does.
class DesignCosts {
 public:
  /// `with_time`: whether to measure.
  DesignCosts(const CommandLine& line, bool with_time) : line_(line), with_time_(with_time) {}

  DesignCost of(const RunDesign& design, const std::vector<WantedCell>& cells, ProgressBar& bar);

 private:
  double seconds_an_image(const config::Config& config, const std::string& what, ProgressBar& bar);

  const CommandLine& line_;
  bool with_time_;
  std::map<std::string, double> measured_;  // by settings
};

}  // namespace settrain
