// The program: parses the command line, runs a subcommand, and turns errors into exit codes.
#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include "apps/settrain/command_line.h"
#include "datasets/decoding/decode_image.h"
#include "metrics/sets/rule_metrics.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/train/compute_threads.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

constexpr const char* kDescription =
    "Trains and evaluates set-valued image classifiers: models that answer with a set of classes.\n"
    "`settrain --config FILE` is short for `settrain train --config FILE`.";

// A bare --config means `train`: the subcommand is put in front where the first argument is an option of train. `help
// eval` is `eval --help`.
std::vector<std::string> with_default_subcommand(std::vector<std::string> arguments) {
  if (arguments.empty()) return arguments;
  const std::string first = arguments[0];
  if (first == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  } else if (first.starts_with("--") && first != "--help" && first != "--version") {
    arguments.insert(arguments.begin(), "train");
  }
  return arguments;
}

// Names the nearest subcommand for an unknown one. CLI11 itself would ask for a subcommand, or print the help.
void refuse_unknown_subcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& argument : arguments) {
    std::vector<std::string> names;
    const CLI::App* chosen = nullptr;
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(sub->get_name());
      if (sub->get_name() == argument) chosen = sub;
    }
    if (names.empty() || argument.starts_with('-')) return;
    if (!chosen) {
      // A command with positional arguments checks names itself.
      if (!command->get_options([](const CLI::Option* option) { return option->get_positional(); }).empty()) return;
      throw ConfigError(fmt::format("there is no `{} {}`{}; there are {}", command->get_name(), argument,
                                    did_you_mean(argument, names), fmt::join(names, ", ")));
    }
    command = chosen;
  }
}

// Names the first unknown option and the nearest one that the chosen command has; empty where all are known. CLI11
// names them in reverse order, with their values.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::App* command = &app; command;) {
    for (const CLI::Option* option : command->get_options()) {
      known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
    const auto chosen = command->get_subcommands();
    command = chosen.empty() ? nullptr : chosen.back();
  }
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  for (size_t i = 1; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string option = arguments[i].substr(0, arguments[i].find('='));
    const size_t dashes = std::min(option.find_first_not_of('-'), option.size());
    const std::string name = option.substr(dashes);
    const bool is_option = dashes > 0 && !name.empty() && name.find_first_of("0123456789.") != 0;
    if (is_option && std::ranges::find(unknown, arguments[i]) != unknown.end())
      return "there is no option " + option + did_you_mean(name, known, "--");
  }
  return "";
}

// Refuses a path that begins with ~, which the shell replaces neither in quotes nor in --out=~/sets.csv, or with $HOME
// in quotes. Only a file that is there by that very name may be meant.
void refuse_shell_paths(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      std::error_code ignored;
      const std::string_view part = shell_part(value);
      if (part.empty() || std::filesystem::exists(value, ignored)) continue;
      throw ConfigError(fmt::format(
          "{}: '{}' begins with {}, which the shell has not replaced: it does so only without quotes, and ~ only at the "
          "beginning of a word; write {}{}",
          option->get_name(), value, part, part == "~" ? "$HOME" : part, value.substr(part.size())));
    }
  }
  for (const CLI::App* chosen : command.get_subcommands()) refuse_shell_paths(*chosen);
}

std::string out_of_memory(const std::string& what) {
  return what +
         "\nOut of memory. Lower data.batch_size (with train.accumulate raised, a step sees as many images as before), "
         "data.eval_batch_size or data.prefetch, set train.gradient_checkpointing: true or train.precision: bf16, or choose a "
         "smaller model; --dry-run tells what a run needs. On a GPU, train.graph: off keeps no captured step in memory, and "
         "data.drop_last: true leaves out an epoch's smaller last step, which runs beside it";
}

int run_action(const CommandLine& line) {
  try {
    threads_of_environment();  // throws for a number of threads that would take half a minute to start
    const int code = line.action();
    if (std::cout.flush()) return code;
    log::error("standard output could not be written");
  } catch (const Interrupted& stop) {
    return 128 + stop.signal();
  } catch (const ConfigError& problem) {
    log::error(problem.what());
    return kUsage;
  } catch (const Error& problem) {
    log::error(problem.what());
  } catch (const std::bad_alloc&) {
    log::error(out_of_memory("there is no more memory"));
  } catch (const std::system_error& problem) {
    // Starting a thread throws it.
    const bool of_memory = problem.code() == std::errc::resource_unavailable_try_again;
    log::error(of_memory ? out_of_memory(fmt::format("no thread could be started: {}", problem.what()))
                         : problem.what());
  } catch (const c10::Error& problem) {
    const std::string what = problem.what_without_backtrace();
    // ATen has an exception type only for its own allocator of GPU memory.
    const bool of_memory = dynamic_cast<const c10::OutOfMemoryError*>(&problem) ||
                           what.find("can't allocate memory") != std::string::npos ||
                           what.find("out of memory") != std::string::npos ||
                           what.find("ALLOC_FAILED") != std::string::npos;
    log::error(of_memory ? out_of_memory(what) : what);
  } catch (const std::exception& problem) {
    log::error(problem.what());
  }
  return kFailed;
}

std::string version_text() {
  const bool decodes = !image_library_versions().empty();
  return std::string("settrain ") + build_info().version + (decodes ? "" : " (without image decoding)");
}

// Parses, runs and returns the exit code.
int run_command_line(int argc, char** argv) {
  open_standard_streams();
  // Writing to a closed pipe must give an error that can be reported, and not kill the process.
  std::signal(SIGPIPE, SIG_IGN);

  CommandLine line;
  register_builtin_datasets(line.registries.datasets);
  register_builtin_models(line.registries.models);
  register_builtin_losses(line.registries.losses);
  register_builtin_metrics(line.registries.metrics);
  register_set_metrics(line.registries.metrics);
  register_builtin_optimizers(line.registries.optimizers);
  line.arguments.assign(argv, argv + argc);
  // A sweep starts its runs by /proc/PID/exe, a path that is gone once the sweep has ended.
  if (argc > 0 && line.arguments[0].starts_with("/proc/")) line.arguments[0] = program_file().string();

  CLI::App app(kDescription, "settrain");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.failure_message([&line](const CLI::App* failed, const CLI::Error& problem) {
    std::string command = failed->get_name();
    for (auto chosen = failed->get_subcommands(); !chosen.empty(); chosen = chosen.back()->get_subcommands()) {
      command += " " + chosen.back()->get_name();
    }
    const std::string unknown = unknown_option(*failed, line.arguments);
    return fmt::format("{}\nRun `{} --help` for what it takes.\n", unknown.empty() ? problem.what() : unknown, command);
  });
  for (const auto add :
       {add_init_command,    add_train_command,  add_eval_command,      add_sweep_command,  add_table_command,
        add_compare_command, add_report_command, add_calibrate_command, add_scores_command, add_predict_command,
        add_embed_command,   add_probe_command,  add_serve_command,     add_export_command, add_import_command,
        add_config_command,  add_list_command,   add_check_command,     add_bench_command,  add_figure_command,
        add_data_command}) {
    add(app, line);
  }

  try {
    std::vector<std::string> arguments = with_default_subcommand({argv + 1, argv + argc});
    refuse_unknown_subcommand(app, arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
    refuse_shell_paths(app);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? kSuccess : kUsage;
  } catch (const ConfigError& problem) {
    log::error(problem.what());
    return kUsage;
  }
  return run_action(line);
}

// Ends without the destructors of static objects: LibTorch would take each of its operators out of its tables, a third
// of the processor time of a command that computes nothing. The leak sanitizer runs only at an ordinary exit.
[[noreturn]] void end_process(int code) {
  if (!std::cout.flush() && code == kSuccess) code = kFailed;
  std::fflush(nullptr);
#ifdef __SANITIZE_ADDRESS__
  std::exit(code);
#else
  std::_Exit(code);
#endif
}

}  // namespace
}  // namespace settrain

int main(int argc, char** argv) {
  settrain::ignore_size_signal();
  settrain::end_process(settrain::run_command_line(argc, argv));
}
