#include <iostream>
#include <memory>

#include "apps/settrain/data_command.h"
#include "apps/settrain/data_options.h"
#include "src/core/interrupt.h"
#include "src/data_tools/stats_files.h"

namespace settrain {
namespace {

struct StatsOptions {
  std::string folder;
  int64_t workers = 0;
  bool json = false;
};

int print_stats(const CommandLine& line, const StatsOptions& options) {
  const LoadedData data = load_data(line);
  catch_interrupts();
  const DataStats stats = data_stats(data, options.workers);
  std::cout << (options.json ? stats_json(stats) : stats_text(stats)) << std::flush;
  if (!options.folder.empty()) {
    // What was asked for on standard output stays as it is.
    for (const auto& file : write_stats(stats, options.folder)) std::cerr << file.string() << '\n';
  }
  return kSuccess;
}

}  // namespace

void add_data_stats_command(CLI::App& data, CommandLine& line) {
  CLI::App* command = data.add_subcommand(
      "stats",
      "Statistics of a config's data: images per class, imbalance (Lorenz curve, Gini coefficient, shot groups), "
      "image sizes, label noise");
  const auto options = std::make_shared<StatsOptions>();
  add_data_config(*command, line);
  add_workers(*command, options->workers);
  command->add_option("--out", options->folder, "A folder to write numbers and pictures (gnuplot's) to")
      ->check([](const std::string& folder) { return std::string(folder.empty() ? "is empty: name a folder" : ""); });
  command->add_flag("--json", options->json, "Print JSON, with the counts of all classes and the noise matrix");
  command->callback([&line, options] { line.action = [&line, options] { return print_stats(line, *options); }; });
}

}  // namespace settrain
