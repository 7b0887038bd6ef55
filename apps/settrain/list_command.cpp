#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/settrain/command_line.h"
#include "models/cost.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "src/core/human.h"

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

std::string in_billions(int64_t number) {
  return fmt::format("{:.3f} G", 1e-9 * static_cast<double>(number));
}

// What each costs, at the images and classes that it was made for, comes first.
void print_models(const ModelRegistry& models) {
  size_t width = 0;
  for (const ModelEntry& entry : models.entries()) width = std::max(width, entry.name.size());
  std::cout << fmt::format("{:<{}}  {:>11}  {:>13}  {}\n", "model", width, "parameters", "multiply-adds", "for");
  for (const ModelEntry& entry : models.entries()) {
    const config::Config config = config::load({{model_section(models)}, {}}, {}, {"model.name=" + entry.name});
    const NetworkCost cost = network_cost(entry, config, entry.usual);
    std::cout << fmt::format("{:<{}}  {:>11}  {:>13}  {}x{}x{}, {} classes\n", entry.name, width,
                             format_count(cost.parameters), in_billions(cost.multiply_adds), entry.usual.channels,
                             entry.usual.height, entry.usual.width, entry.usual.num_classes);
  }
  std::cout << '\n';
  print(models);
}

}  // namespace

void add_list_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("list", "Lists what a config can name");
  command->require_subcommand(1);
  const auto kind = [&](const char* name, const char* help, auto print_all) {
    command->add_subcommand(name, help)->callback([&line, print_all] {
      line.action = [&line, print_all] {
        print_all(line.registries);
        return kSuccess;
      };
    });
  };
  kind("losses", "Every loss with its keys", [](const Registries& all) { print(all.losses); });
  kind("models", "Every model with its keys, parameters and multiply-adds",
       [](const Registries& all) { print_models(all.models); });
  kind("datasets", "Every data set with its keys", [](const Registries& all) { print(all.datasets); });
  kind("metrics", "Every metric with its keys", [](const Registries& all) { print(all.metrics); });
}

}  // namespace settrain
