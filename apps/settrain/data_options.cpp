#include "apps/settrain/data_options.h"

#include <algorithm>
#include <thread>

namespace settrain {

void add_data_config(CLI::App& command, CommandLine& line) {
  command
      .add_option("CONFIG,--config", line.config,
                  "A YAML file, or the name of one that comes with settrain (configs/), from any folder")
      ->required()
      ->check([](const std::string& file) { return std::string(file.empty() ? "is empty: name a file" : ""); });
  command.add_option("--set", line.settings, "key.path=value, over the file's; may be given several times")
      ->allow_extra_args(false);
}

void add_workers(CLI::App& command, int64_t& workers) {
  workers = std::max<int64_t>(1, std::thread::hardware_concurrency());
  command.add_option("--workers", workers, "Threads that read images")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
}

LoadedData load_data(const CommandLine& line) {
  return load_data(line.registries.datasets, load_config(line));
}

}  // namespace settrain
