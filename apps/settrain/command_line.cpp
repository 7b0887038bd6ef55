#include "apps/settrain/command_line.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "apps/settrain/compare_command.h"
#include "apps/settrain/config_path.h"
#include "apps/settrain/report_command.h"
#include "apps/settrain/run_command_line.h"
#include "apps/settrain/table_command.h"
#include "datasets/decode_image.h"
#include "losses/ops/loss_kernels.h"
#include "metrics/sets/rule_metrics.h"
#include "src/config/load.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/train/experiment_schema.h"
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

// CLI11 answers a subcommand that it does not know by asking for one, or by the help.
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
      // What takes names besides looks for them itself.
      if (!command->get_options([](const CLI::Option* option) { return option->get_positional(); }).empty()) return;
      throw ConfigError(fmt::format("there is no `{} {}`{}; there are {}", command->get_name(), argument,
                                    did_you_mean(argument, names), fmt::join(names, ", ")));
    }
    command = chosen;
  }
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
    threads_of_environment();  // refuses a number that would take half a minute to start
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
    // What a thread that cannot be started throws.
    const bool of_memory = problem.code() == std::errc::resource_unavailable_try_again;
    log::error(of_memory ? out_of_memory(fmt::format("no thread could be started: {}", problem.what()))
                         : problem.what());
  } catch (const c10::Error& problem) {
    const std::string what = problem.what_without_backtrace();
    // ATen has a type of its own only for what its allocator of GPU memory lacks.
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
  const bool decodes = decoder_version() != "none";
  return std::string("settrain ") + build_info().version + (decodes ? "" : " (without image decoding)");
}

}  // namespace

void warn_without_loss_kernels(at::Device device) {
  if (has_loss_kernels(device)) return;
  log::warning(
      fmt::format("[model] this build has no kernels for a GPU of compute capability {}: losses take LibTorch's "
                  "operations, which are slower; CMAKE_CUDA_ARCHITECTURES chooses what is built",
                  describe_gpu(device).at("compute_capability").get<std::string>()));
}

int run_command_line(int argc, char** argv) {
  open_standard_streams();
  // Writing to a closed pipe must come back as an error that can be told, not as a death.
  std::signal(SIGPIPE, SIG_IGN);

  CommandLine line;
  register_builtin_datasets(line.registries.datasets);
  register_builtin_models(line.registries.models);
  register_builtin_losses(line.registries.losses);
  register_builtin_metrics(line.registries.metrics);
  register_set_metrics(line.registries.metrics);
  register_builtin_optimizers(line.registries.optimizers);
  line.arguments.assign(argv, argv + argc);
  // A sweep starts its runs by /proc/PID/exe, which says nothing once it has ended.
  if (argc > 0 && line.arguments[0].starts_with("/proc/")) line.arguments[0] = program_file().string();

  CLI::App app(kDescription, "settrain");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& problem) {
    std::string command = failed->get_name();
    for (auto chosen = failed->get_subcommands(); !chosen.empty(); chosen = chosen.back()->get_subcommands()) {
      command += " " + chosen.back()->get_name();
    }
    return fmt::format("{}\nRun `{} --help` for what it takes.\n", problem.what(), command);
  });
  add_train_command(app, line);
  add_eval_command(app, line);
  add_sweep_command(app, line);
  add_table_command(app, line);
  add_compare_command(app, line);
  add_report_command(app, line);
  add_calibrate_command(app, line);
  add_scores_command(app, line);
  add_predict_command(app, line);
  add_serve_command(app, line);
  add_export_command(app, line);
  add_import_command(app, line);
  add_config_command(app, line);
  add_list_command(app, line);
  add_check_command(app, line);
  add_bench_command(app, line);
  add_figure_command(app, line);
  add_data_command(app, line);

  try {
    std::vector<std::string> arguments = with_default_subcommand({argv + 1, argv + argc});
    refuse_unknown_subcommand(app, arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? kSuccess : kUsage;
  } catch (const ConfigError& problem) {
    log::error(problem.what());
    return kUsage;
  }
  return run_action(line);
}

void add_config_options(CLI::App& command, CommandLine& line, bool required) {
  command
      .add_option("--config", line.config,
                  "A YAML file, or the name of one that comes with settrain (configs/), from any folder")
      ->required(required)
      ->check([](const std::string& file) { return std::string(file.empty() ? "is empty: name a file" : ""); });
  command.add_option("--set", line.settings, "key.path=value, over the file's; may be given several times")
      ->allow_extra_args(false);
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

void add_device_option(CLI::App& command, CommandLine& line) {
  command.add_option("--device", line.device, "auto, cpu, cuda or cuda:N; auto takes a GPU where there is one")
      ->capture_default_str();
}

std::filesystem::path config_file(const CommandLine& line) {
  return line.config.empty() ? std::filesystem::path() : find_config(line.config);
}

config::Config load_config(const CommandLine& line) {
  return config::load(experiment_schema(line.registries), config_file(line), line.settings);
}

}  // namespace settrain
