#include <iostream>

#include "apps/settrain/command_line.h"
#include "src/config/document.h"
#include "src/core/process.h"
#include "src/train/experiment_schema.h"

namespace settrain {

void add_config_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("config", "Shows a resolved config, or what a config may hold");
  command->require_subcommand(1);

  CLI::App* show =
      command->add_subcommand("show", "The resolved YAML, every key with its value and where it was given");
  add_config_options(*show, line, /*required=*/false);
  show->callback([&line] {
    line.action = [&line] {
      std::cout << load_config(line).to_yaml_with_origins();
      return kSuccess;
    };
  });

  const auto document = [&](const char* name, const char* help, auto print) {
    command->add_subcommand(name, help)->callback([&line, print] {
      line.action = [&line, print] {
        std::cout << print(experiment_schema(line.registries));
        return kSuccess;
      };
    });
  };
  document("keys", "Every key, a line each; on a terminal wrapped to its width", [](const config::Schema& schema) {
    return config::list_keys(schema, static_cast<size_t>(stdout_columns()));
  });
  document("schema", "A JSON Schema, for editors that complete and check YAML", config::to_json_schema);
  document("docs", "The reference page, in Markdown", config::to_markdown);
}

}  // namespace settrain
