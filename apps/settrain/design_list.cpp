#include "apps/settrain/design_list.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "apps/settrain/design_run.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/table_text.h"
#include "src/train/experiment.h"

namespace settrain {
namespace {

struct ListArguments {
  std::string preset = "paper";
  bool measure = false;
};

int list_designs(const CommandLine& line, const ListArguments& arguments, const std::string& what,
                 std::vector<std::string> head, const std::function<DesignRows(DesignList&)>& rows) {
  std::optional<double> speed;
  if (arguments.measure) {
    catch_interrupts();
    ProgressBar bar;
    speed = DesignCosts(line).measure_speed(bar);
  }
  head.insert(head.end(), {"runs", speed ? "hours" : "multiply-adds", "needs", "there"});
  DesignList list(line, arguments.preset, speed);
  std::cout << markdown_table(head, rows(list));
  const std::string which =
      speed ? fmt::format(
                  "hours of all runs one after the other on {}, from multiply-adds at {:.3g} G/s, as measured now "
                  "in steps of ResNet-18; small networks may take many times as long; loading images is left out",
                  find_device(line.device).str(), *speed / 1e9)
            : fmt::format("multiply-adds of all runs; --measure makes hours of them, roughly");
  log::info(fmt::format("[{0}] preset {1}; {2}; `settrain {0} NAME --dry-run` measures the steps of its own runs", what,
                        arguments.preset, which));
  return kSuccess;
}

}  // namespace

std::vector<std::string> DesignList::cost_cells(const RunDesign& design, const std::vector<WantedCell>& cells) {
  const DesignCost cost = costs_.count(design, cells);
  const double hours = cost.multiply_adds / speed_.value_or(1) / 3600;
  const std::string price = !speed_      ? fmt::format("{:.1e}", cost.multiply_adds)
                            : hours < 10 ? fmt::format("{:.2f}", hours)
                                         : fmt::format("{:.0f}", hours);
  return {std::to_string(cost.runs), cost.is_known ? price : "", cost.needs(), cost.missing.empty() ? "yes" : "no"};
}

void add_design_list(CLI::App& command, CommandLine& line, const std::string& what, std::vector<std::string> head,
                     std::function<DesignRows(DesignList&)> rows) {
  CLI::App* list = command.add_subcommand(
      "list",
      fmt::format("Every {} with the runs that it takes, what they cost, what they need, and whether that is there",
                  what));
  const auto arguments = std::make_shared<ListArguments>();
  add_preset_option(*list, arguments->preset);
  CLI::Option* measure = list->add_flag("--measure", arguments->measure,
                                        "Hours in place of multiply-adds, by the speed of this machine, measured now");
  add_device_option(*list, line);
  list->get_option("--device")->needs(measure);
  list->callback([&line, arguments, what, head = std::move(head), rows = std::move(rows)] {
    line.action = [&line, arguments, what, head, rows] { return list_designs(line, *arguments, what, head, rows); };
  });
}

bool names_design(const CLI::App& command) {
  const bool is_apart = !command.get_subcommands().empty();
  for (const CLI::Option* option : command.get_options()) {
    if (is_apart && option->count() > 0) throw CLI::ExtrasError(std::vector<std::string>{option->get_name()});
  }
  if (!is_apart && command.get_option("name")->empty()) throw CLI::RequiredError("name");
  return !is_apart;
}

}  // namespace settrain
