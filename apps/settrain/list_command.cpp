#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/settrain/command_line.h"

namespace settrain {
namespace {

// Every entry with its sentence and the names of its own keys.
template <class Registry>
void print(const Registry& registry) {
  size_t width = 0;
  for (const auto& entry : registry.entries()) width = std::max(width, entry.name.size());
  for (const auto& entry : registry.entries()) {
    std::cout << fmt::format("{:<{}}  {}\n", entry.name, width, entry.help);
    std::string keys;
    for (const config::Key& key : entry.keys) keys += (keys.empty() ? "" : ", ") + key.name;
    if (!keys.empty()) std::cout << fmt::format("{:<{}}  keys: {}\n", "", width, keys);
  }
}

}  // namespace

void add_list_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("list", "Lists what a config can name");
  command->require_subcommand(1);
  const auto kind = [&](const char* name, auto Registries::*registry) {
    command->add_subcommand(name, std::string("Every one of the ") + name + " with its keys")
        ->callback([&line, registry] {
          line.action = [&line, registry] {
            print(line.registries.*registry);
            return kSuccess;
          };
        });
  };
  kind("losses", &Registries::losses);
  kind("models", &Registries::models);
  kind("datasets", &Registries::datasets);
  kind("metrics", &Registries::metrics);
}

}  // namespace settrain
