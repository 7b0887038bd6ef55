// `settrain table list` and `settrain figure list`: every design that comes with settrain, and what it costs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/settrain/command_line.h"
#include "apps/settrain/design_cost.h"

namespace settrain {

class DesignList {
 public:
  /// `speed`: multiply-adds a second, to say hours; without it multiply-adds are said.
  DesignList(const CommandLine& line, std::string preset, std::optional<double> speed)
      : costs_(line), preset_(std::move(preset)), speed_(speed) {}

  const std::string& preset() const { return preset_; }

  /// Of a design: runs, multiply-adds or hours, needs, and whether they are there.
  std::vector<std::string> cost_cells(const RunDesign& design, const std::vector<WantedCell>& cells);

 private:
  DesignCosts costs_;
  std::string preset_;
  std::optional<double> speed_;
};

using DesignRows = std::vector<std::vector<std::string>>;

/// Gives the command the subcommand `list`. `what`: "table", "figure"; `head`: of the columns before those of
/// cost_cells(); `rows`: all designs.
void add_design_list(CLI::App& command, CommandLine& line, const std::string& what, std::vector<std::string> head,
                     std::function<DesignRows(DesignList&)> rows);

/// Whether the command was given a design's name; false for a subcommand. Throws CLI::ParseError for neither, and for a
/// subcommand with options of the command's own, which it would not see.
bool names_design(const CLI::App& command);

}  // namespace settrain
