// The command line: subcommands, and what becomes of errors.
#pragma once

#include <c10/core/Device.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// Exit codes of the program. A signal gives 128 plus its number: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
enum ExitCode { kSuccess = 0, kFailed = 1, kUsage = 2 };

/// What the subcommands share. Parsing fills it; then `action` runs the chosen subcommand and returns the exit code.
struct CommandLine {
  Registries registries;
  std::vector<std::string> arguments;  // as typed, for the provenance
  std::function<int()> action;

  std::string config;                 // --config
  std::vector<std::string> settings;  // --set
  std::string device = "auto";        // --device
};

/// Options that several subcommands take.
void add_config_options(CLI::App& command, CommandLine& line, bool required);
/// A validator: from `least` to `most`. CLI::Range takes nan too.
CLI::Validator number_between(double least, double most);

void add_device_option(CLI::App& command, CommandLine& line);

/// Says where losses are computed without their kernels, as on a GPU that this build is not for.
void warn_without_loss_kernels(at::Device device);

/// The file that --config names; an empty path without --config.
std::filesystem::path config_file(const CommandLine& line);

/// The resolved config that --config and --set name; without --config the defaults and --set alone.
config::Config load_config(const CommandLine& line);

void add_train_command(CLI::App& app, CommandLine& line);
void add_eval_command(CLI::App& app, CommandLine& line);
void add_sweep_command(CLI::App& app, CommandLine& line);
void add_calibrate_command(CLI::App& app, CommandLine& line);
void add_scores_command(CLI::App& app, CommandLine& line);
void add_predict_command(CLI::App& app, CommandLine& line);
void add_serve_command(CLI::App& app, CommandLine& line);
void add_export_command(CLI::App& app, CommandLine& line);
void add_import_command(CLI::App& app, CommandLine& line);
void add_config_command(CLI::App& app, CommandLine& line);
void add_list_command(CLI::App& app, CommandLine& line);
void add_check_command(CLI::App& app, CommandLine& line);
void add_bench_command(CLI::App& app, CommandLine& line);
void add_figure_command(CLI::App& app, CommandLine& line);
void add_data_command(CLI::App& app, CommandLine& line);

}  // namespace settrain
