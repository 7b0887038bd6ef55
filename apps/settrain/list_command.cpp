#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "apps/settrain/command_line.h"
#include "models/cost.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "src/core/text.h"
#include "src/optim/optimizer.h"

namespace settrain {
namespace {

// Further lines about an entry.
template <class Entry>
std::string details(const Entry&) {
  return {};
}

template <>
std::string details(const LossEntry& entry) {
  std::vector<std::string> traits;
  if (entry.requirements.normalised_head) traits.push_back("a normalised head");
  if (entry.requirements.two_heads) traits.push_back("two heads");
  if (entry.requirements.class_counts) traits.push_back("class counts");
  if (entry.requirements.sample_ids) traits.push_back("sample ids");
  if (entry.takes_label_sets) traits.push_back("label sets, or single labels");
  std::string text = "loss: " + entry.formula;
  if (!traits.empty()) text += fmt::format("\nneeds: {}", fmt::join(traits, ", "));
  return text;
}

template <>
std::string details(const ModelEntry& entry) {
  const PretrainedSource& weights = entry.pretrained;
  return weights.url.empty() ? "" : fmt::format("weights: {}, {}", weights.name, weights.url);
}

std::string names_of(const config::Keys& keys) {
  std::string names;
  for (const config::Key& key : keys) names += (names.empty() ? "" : ", ") + key.name;
  return names;
}

// Prints every entry with its sentence, its details and the names of its keys.
template <class Registry>
void print_entries(const Registry& registry) {
  size_t width = 0;
  for (const auto& entry : registry.entries()) width = std::max(width, entry.name.size());
  for (const auto& entry : registry.entries()) {
    std::string text = entry.help;
    if (const std::string more = details(entry); !more.empty()) text += '\n' + more;
    if (!entry.keys.empty()) text += "\nkeys: " + names_of(entry.keys);
    std::istringstream lines(text);
    std::string name = entry.name;
    for (std::string line; std::getline(lines, line); name.clear()) {
      std::cout << fmt::format("{:<{}}  {}\n", name, width, line);
    }
  }
}

void print_losses(const LossRegistry& losses) {
  print_entries(losses);
  std::cout
      << "\ns: scores, y: label, Y: label set, L: classes, K: loss.k, B: batch size, s_[k]: the k-th largest, (x)_+: "
         "max(x, 0),\nsigma: sigmoid, CE: cross-entropy, BCE: binary cross-entropy summed over classes, z: the second "
         "head's scores.\nKeys of them all: "
      << names_of(ClassWeightOptions::keys()) << '\n';
}

std::string in_billions(int64_t number) {
  return fmt::format("{:.3f} G", 1e-9 * static_cast<double>(number));
}

// Prints first what each model costs, for the images and classes that it was made for.
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
  print_entries(models);
}

}  // namespace

void add_list_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("list", "Lists the losses, models, data sets, optimizers and metrics that a config can name");
  command->require_subcommand(1);
  const Registries& all = line.registries;
  add_printer(*command, line, "losses", "Every loss with its formula, what it needs, and its keys",
              [&all] { print_losses(all.losses); });
  add_printer(*command, line, "models", "Every model with its keys, parameters and multiply-adds",
              [&all] { print_models(all.models); });
  add_printer(*command, line, "datasets", "Every data set with its keys", [&all] { print_entries(all.datasets); });
  add_printer(*command, line, "metrics", "Every metric with its keys", [&all] { print_entries(all.metrics); });
  add_printer(*command, line, "optimizers", "Every optimizer with its keys", [&all] {
    print_entries(all.optimizers);
    std::cout << "\nKeys of them all: " << names_of(optimizer_section(all.optimizers).keys) << '\n';
  });
}

}  // namespace settrain
