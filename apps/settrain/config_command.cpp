#include <iostream>

#include "apps/settrain/command_line.h"
#include "src/config/document.h"
#include "src/core/process.h"
#include "src/train/experiment_schema.h"

namespace settrain {

void add_config_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("config", "Shows a resolved config, or what a config may hold");
  command->require_subcommand(1);

  add_printer(*command, line, "show", "The resolved YAML, every key with its value and where it was given",
              [&line] { std::cout << load_config(line).to_yaml_with_origins(); });
  add_config_options(*command->get_subcommand("show"), line, /*required=*/false);
  add_printer(*command, line, "keys", "Every key, a line each; on a terminal wrapped to its width", [&line] {
    std::cout << config::list_keys(experiment_schema(line.registries), static_cast<size_t>(stdout_columns()));
  });
  add_printer(*command, line, "schema", "A JSON Schema, for editors that complete and check YAML",
              [&line] { std::cout << config::to_json_schema(experiment_schema(line.registries)); });
  add_printer(*command, line, "docs", "The reference page, in Markdown",
              [&line] { std::cout << config::to_markdown(experiment_schema(line.registries)); });
}

}  // namespace settrain
