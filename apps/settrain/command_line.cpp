#include "apps/settrain/command_line.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "losses/ops/loss_kernels.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/inference/trained_run.h"
#include "src/train/experiment_schema.h"
#include "src/train/provenance.h"

namespace settrain {

namespace fs = std::filesystem;

namespace {

fs::path installed_or(const char* name, const char* in_source) {
  std::error_code ignored;
  const fs::path installed = program_file().parent_path().parent_path() / "share/settrain" / name;
  return fs::is_directory(installed, ignored) ? installed : fs::path(in_source);
}

}  // namespace

void add_printer(CLI::App& app, CommandLine& line, const char* name, const char* help, std::function<void()> print) {
  app.add_subcommand(name, help)->callback([&line, print = std::move(print)] {
    line.action = [print] {
      print();
      return kSuccess;
    };
  });
}

void add_config_options(CLI::App& command, CommandLine& line, bool required, const char* names) {
  command
      .add_option(names, line.config,
                  "A YAML file, or the name of one that comes with settrain (configs/), from any folder")
      ->required(required)
      ->check(not_empty("file"));
  add_set_option(command, line, "key.path=value, over the file's; may be given several times");
}

void add_set_option(CLI::App& command, CommandLine& line, const char* help) {
  command.add_option("--set", line.settings, help)->allow_extra_args(false);
}

void add_device_option(CLI::App& command, CommandLine& line) {
  command.add_option("--device", line.device, "auto, cpu, cuda or cuda:N; auto takes a GPU where there is one")
      ->capture_default_str();
}

CLI::Option* add_integer(CLI::App& command, const char* name, int64_t& value, int64_t least, int64_t most,
                         const std::string& help) {
  CLI::Option* option = command.add_option(name, value, help)->check(CLI::Range(least, most));
  return value < least ? option : option->capture_default_str();
}

CLI::Validator number_between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value);
        return is_number && value >= least && value <= most
                   ? std::string()
                   : fmt::format("Value {} not in range [{} - {}]", text, least, most);
      },
      fmt::format("FLOAT in [{} - {}]", least, most));
}

CLI::Validator not_empty(const char* what) {
  return CLI::Validator(
      [what](const std::string& text) { return text.empty() ? fmt::format("is empty: name a {}", what) : ""; }, "");
}

fs::path config_file(const CommandLine& line) {
  return line.config.empty() ? fs::path() : find_config(line.config);
}

config::Config load_config(const CommandLine& line) {
  return config::load(experiment_schema(line.registries), config_file(line), line.settings);
}

fs::path config_folder() {
  return installed_or("configs", SETTRAIN_SOURCE_CONFIGS);
}

fs::path golden_folder() {
  return installed_or("golden", SETTRAIN_SOURCE_GOLDEN);
}

fs::path find_config(const std::string& name) {
  const fs::path folder = config_folder();
  std::error_code ignored;
  for (const fs::path& candidate : {fs::path(name), folder / name, folder / (name + ".yaml")}) {
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  std::vector<std::string> known;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".yaml") known.push_back(fs::relative(entry.path(), folder).string());
  }
  throw ConfigError("there is no config file '" + name + "', neither here nor in " + folder.string() +
                    did_you_mean(name, known) + shell_hint(name));
}

void CheckpointChoice::add_options(CLI::App& command) {
  CLI::Option* by_metric = command.add_option(
      "--metric", metric,
      "val/top5: the best checkpoint by that metric, of those that the run selected on; needed where there are several");
  command.add_option("--checkpoint", checkpoint, "last, or best-val-top5: a name in the run's checkpoints/")
      ->excludes(by_metric);
}

fs::path chosen_checkpoint(const CommandLine& line, const CheckpointChoice& choice, const RunFolder& folder) {
  if (!choice.checkpoint.empty()) return folder.checkpoint(choice.checkpoint);
  if (!choice.metric.empty()) return folder.checkpoint(folder.selected_checkpoint(choice.metric).stem().string());
  const config::Config config = config::load_recorded(experiment_schema(line.registries), folder.config());
  const auto& select = config.get<config::Texts>("select");
  const auto files = chosen_checkpoints(folder, select);
  warn_of_last_weights(folder, select, files);
  if (files.size() == 1) return files.front();
  throw ConfigError(fmt::format("'{}' has a best checkpoint for each of several metrics: say --metric {}",
                                folder.path().string(), fmt::join(select, ", or --metric ")));
}

void refuse_existing(const fs::path& file, bool overwrite) {
  const auto folder = fs::absolute(file).parent_path();
  if (!fs::exists(file)) {
    if (fs::is_directory(folder)) return;
    throw Error(fmt::format("cannot write '{}': there is no folder '{}'", file.string(), folder.string()));
  }
  if (!fs::is_regular_file(file)) throw Error(fmt::format("'{}' exists and is no file", file.string()));
  if (folder.filename() == "checkpoints" && RunFolder::is_there(folder.parent_path())) {
    throw Error(fmt::format("'{}' is a checkpoint of a run", file.string()));
  }
  if (!overwrite) throw Error(fmt::format("'{}' is there already; --overwrite replaces it", file.string()));
}

void warn_without_loss_kernels(at::Device device) {
  if (has_loss_kernels(device)) return;
  log::warning(
      fmt::format("[model] this build has no kernels for a GPU of compute capability {}: losses take LibTorch's "
                  "operations, which are slower; CMAKE_CUDA_ARCHITECTURES chooses what is built",
                  describe_gpu(device).at("compute_capability").get<std::string>()));
}

std::pair<std::string, std::string> named_file(const char* option, const std::string& text, const char* what) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals != std::string::npos && equals + 1 < text.size() && is_place_name(name))
    return {name, text.substr(equals + 1)};
  throw ConfigError(
      fmt::format("{} {}: expected NAME={}, with a name of letters, digits, - and _", option, in_quotes(text), what));
}

}  // namespace settrain
