// The parsed command line, and the options that several subcommands share.
#pragma once

#include <c10/core/Device.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/run_folder/run_folder.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// Exit codes of the program. A signal gives 128 plus its number: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
enum ExitCode { kSuccess = 0, kFailed = 1, kUsage = 2 };

/// Parsing fills it; then `action` runs the chosen subcommand and returns the exit code.
struct CommandLine {
  Registries registries;
  std::vector<std::string> arguments;  // as typed, for the provenance
  std::function<int()> action;

  std::string config;                 // --config
  std::vector<std::string> settings;  // --set
  std::string device = "auto";        // --device
};

/// A subcommand whose options parsing puts into `arguments`.
template <class Arguments>
struct Subcommand {
  CLI::App* command;
  std::shared_ptr<Arguments> arguments;
};

/// Adds a subcommand to `app`. Where it is chosen, the action is run(line, arguments).
template <class Arguments, class Run>
Subcommand<Arguments> add_subcommand(CLI::App& app, CommandLine& line, const char* name, Run run,
                                     const std::string& help) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(name, help);
  command->callback(
      [&line, arguments, run] { line.action = [&line, arguments, run] { return run(line, *arguments); }; });
  return {command, arguments};
}

/// Adds a subcommand without options of its own, which calls print().
void add_printer(CLI::App& app, CommandLine& line, const char* name, const char* help, std::function<void()> print);

/// --config or, with `names` "CONFIG,--config", a positional argument too; and --set.
void add_config_options(CLI::App& command, CommandLine& line, bool required, const char* names = "--config");
/// --set, once for each setting.
void add_set_option(CLI::App& command, CommandLine& line, const char* help);
void add_device_option(CLI::App& command, CommandLine& line);

/// An option with a value from `least` to `most`. The help has the default, unless it is out of range: not given.
CLI::Option* add_integer(CLI::App& command, const char* name, int64_t& value, int64_t least, int64_t most,
                         const std::string& help);

/// A validator for numbers from `least` to `most`. CLI::Range takes nan too.
CLI::Validator number_between(double least, double most);

/// A validator that refuses an empty text: "is empty: name a folder".
CLI::Validator not_empty(const char* what);

/// An option that takes one of the words and sets `value` to what the word stands for. The default is in the help.
template <class Value>
CLI::Option* add_choice(CLI::App& command, const char* name, Value& value,
                        const std::vector<std::pair<std::string, Value>>& words, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [word, meaning] : words) names.push_back(word);
  const auto default_word = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.second == value; });
  const auto read = [&value, words](const std::string& text) {
    for (const auto& [word, meaning] : words) {
      if (word == text) value = meaning;
    }
  };
  return command.add_option_function<std::string>(name, read, help)
      ->check(CLI::IsMember(names))
      ->default_str(default_word->first);
}

/// The file that --config names; an empty path without --config.
std::filesystem::path config_file(const CommandLine& line);

/// The resolved config that --config and --set name; without --config the defaults and --set alone.
config::Config load_config(const CommandLine& line);

/// `name` as a path, or below the configs/ that come with the program, with or without its ".yaml". Throws ConfigError
/// with the folders that were searched and the nearest name.
std::filesystem::path find_config(const std::string& name);

/// configs/ and tests/golden/: beside the program in an installation, else in the source tree.
std::filesystem::path config_folder();
std::filesystem::path golden_folder();

/// The checkpoint of a run, for a subcommand that takes one.
struct CheckpointChoice {
  std::string metric, checkpoint;  // --metric, --checkpoint

  void add_options(CLI::App& command);
};

/// The checkpoint that the options name, or without them the one that stands for the run. Throws ConfigError where
/// several do, and RunError where it is not there.
std::filesystem::path chosen_checkpoint(const CommandLine& line, const CheckpointChoice& choice,
                                        const RunFolder& folder);

/// Throws Error where an output must not replace what is in its place: a file without `overwrite`, a checkpoint of a
/// run, or something that is no regular file.
void refuse_existing(const std::filesystem::path& file, bool overwrite);

/// Warns where losses are computed without their kernels, as on a GPU for which this build has no code.
void warn_without_loss_kernels(at::Device device);

void add_train_command(CLI::App& app, CommandLine& line);
void add_eval_command(CLI::App& app, CommandLine& line);
void add_sweep_command(CLI::App& app, CommandLine& line);
void add_table_command(CLI::App& app, CommandLine& line);
void add_compare_command(CLI::App& app, CommandLine& line);
void add_report_command(CLI::App& app, CommandLine& line);
void add_calibrate_command(CLI::App& app, CommandLine& line);
void add_scores_command(CLI::App& app, CommandLine& line);
void add_probe_command(CLI::App& app, CommandLine& line);
void add_predict_command(CLI::App& app, CommandLine& line);
void add_embed_command(CLI::App& app, CommandLine& line);
void add_serve_command(CLI::App& app, CommandLine& line);
void add_export_command(CLI::App& app, CommandLine& line);
void add_import_command(CLI::App& app, CommandLine& line);
void add_init_command(CLI::App& app, CommandLine& line);
void add_config_command(CLI::App& app, CommandLine& line);
void add_list_command(CLI::App& app, CommandLine& line);
void add_check_command(CLI::App& app, CommandLine& line);
void add_bench_command(CLI::App& app, CommandLine& line);
void add_figure_command(CLI::App& app, CommandLine& line);
void add_data_command(CLI::App& app, CommandLine& line);
/// A subcommand of `settrain data`.
void add_data_show_command(CLI::App& data, CommandLine& line);

/// "alps" and "alps.csv" of the option's text "alps=alps.csv". `what`: the second part, for the message. Throws
/// ConfigError, also where the first part is no is_place_name().
std::pair<std::string, std::string> named_file(const char* option, const std::string& text, const char* what);

}  // namespace settrain
