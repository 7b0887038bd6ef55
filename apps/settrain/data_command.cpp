#include "apps/settrain/data_command.h"

namespace settrain {

void add_data_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("data", "Downloads, splits, verifies and describes data sets");
  command->require_subcommand(1);
  add_data_verify_command(*command, line);
  add_data_stats_command(*command, line);
  add_data_fetch_command(*command, line);
  add_data_split_command(*command, line);
}

}  // namespace settrain
