// Costs and needs of the runs of tables and figures; `settrain table list` and `settrain figure list`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/settrain/command_line.h"
#include "src/core/progress_bar.h"
#include "src/papers/design/run_design.h"

namespace settrain {

/// The settings "key=value" of a training step on random images: two steps with the same take the same time.
using StepKind = std::vector<std::string>;

struct DesignCost {
  int64_t runs = 0;
  bool is_known = true;                 // false where the user's own data are not there: the next two then lack runs
  std::map<StepKind, double> images{};  // of all runs; an evaluated image counts as a third of a trained one
  double multiply_adds = 0;             // of all runs; a trained image takes those of three forward passes
  std::vector<std::string> data{}, weights{};  // needed ones, whether they are there or not
  std::vector<std::string> missing{};          // a sentence for each of them that is missing

  /// Adds what a run needs.
  void add_files(const config::Config& config);

  /// "cifar100 (data/cifar-100-binary); weights/resnet18.pth and 9 more".
  std::string needs() const;

  /// "needs: ...", and "missing: ..." for each that is not there, a line each.
  std::string needs_lines() const;
};

class DesignCosts {
 public:
  explicit DesignCosts(const CommandLine& line) : line_(line) {}

  /// Counts the cost without measuring.
  DesignCost count(const RunDesign& design, const std::vector<WantedCell>& cells);

  /// Seconds of all runs one after the other, from a few steps of each kind that are measured on --device.
  double measure_seconds(const DesignCost& cost, ProgressBar& bar) const;

  /// Multiply-adds a second in training steps of ResNet-18, measured on --device.
  double measure_speed(ProgressBar& bar) const;

 private:
  double seconds_per_image(const StepKind& kind, ProgressBar& bar) const;

  const CommandLine& line_;
  std::map<StepKind, double> forward_;  // multiply-adds of the forward pass of one image
};

/// The columns of costs in a list of designs.
class DesignList {
 public:
  /// `speed`: multiply-adds a second, which give hours; without it the list has multiply-adds.
  DesignList(const CommandLine& line, std::string preset, std::optional<double> speed)
      : costs_(line), preset_(std::move(preset)), speed_(speed) {}

  const std::string& preset() const { return preset_; }

  /// `front` and, behind it: the runs, multiply-adds or hours, needs, and whether these are there.
  std::vector<std::string> row(std::vector<std::string> front, const RunDesign& design,
                               const std::vector<WantedCell>& cells);

 private:
  DesignCosts costs_;
  std::string preset_;
  std::optional<double> speed_;
};

using DesignRows = std::vector<std::vector<std::string>>;

/// Gives the command the subcommand `list`. `what`: "table", "figure"; `head`: the titles of the first
/// columns; `rows` makes a row for each design.
void add_design_list(CLI::App& command, CommandLine& line, const std::string& what, std::vector<std::string> head,
                     std::function<DesignRows(DesignList&)> rows);

}  // namespace settrain
