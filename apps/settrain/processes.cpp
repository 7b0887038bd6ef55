#include "apps/settrain/processes.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/train/compute_policy.h"
#include "src/train/run_options.h"

namespace settrain {
namespace {

// Warns where torchrun has set OMP_NUM_THREADS to 1, which it does for programs that would take every core otherwise.
void warn_of_idle_cores(const config::Config& config) {
  if (config.get<int64_t>("run.threads") != RunOptions::kAuto || own_cores() == 1) return;
  if (environment_variable("OMP_NUM_THREADS") != "1" || !environment_variable("TORCHELASTIC_RUN_ID")) return;
  log::warning(fmt::format(
      "[run] OMP_NUM_THREADS is 1, as torchrun sets it: each process computes with one of its {} cores; set "
      "OMP_NUM_THREADS or run.threads",
      own_cores()));
}

}  // namespace

int repeat_in_processes(const CommandLine& line, int64_t processes) {
  catch_interrupts();
  std::vector<std::string> command = line.arguments;
  command[0] = program_file().string();
  return start_processes(command, processes);
}

Processes::Processes() : launch_(launch_from(environment_variable)) {
  if (!launch_) return;
  log::speak_as_process(launch_->rank);
  end_with_parent();
}

at::Device Processes::device(const std::string& name) const {
  const at::Device device = find_device(name);
  if (count() == 1 || !device.is_cuda() || device.has_index()) return device;
  return at::Device(at::kCUDA, gpu_of(*launch_, at::detail::getCUDAHooks().deviceCount()));
}

std::shared_ptr<ProcessGroup> Processes::connect(const config::Config& config, at::Device device) {
  if (count() == 1) return group_ = std::make_shared<ProcessGroup>();
  if (is_first()) warn_of_idle_cores(config);
  return group_ = std::make_shared<ProcessGroup>(*launch_, config.read<ParallelOptions>("parallel"), device);
}

int Processes::run(const std::function<int()>& work) {
  try {
    return work();
  } catch (const Interrupted&) {
    throw;
  } catch (const AgreedError& error) {
    report(error.what());
    if (group_) group_->leave();
    if (is_first()) throw;
    return kFailed;
  } catch (const ParallelError& error) {  // another process ended, or cannot be reached
    report(error.what());
    if (group_) group_->leave();
    throw;
  } catch (const std::exception& error) {
    report(error.what());
    if (group_) {
      group_->report_failure(error.what());
    } else if (launch_) {
      ProcessGroup::report_absence(*launch_, error.what());
    }
    throw;
  }
}

void Processes::report(const std::string& message) {
  const std::optional<std::string> file = environment_variable("TORCHELASTIC_ERROR_FILE");
  if (!file || file->empty()) return;
  try {
    const nlohmann::json json{{"message", message}, {"timestamp", std::to_string(std::time(nullptr))}};
    write_file_atomically(*file, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const Error& error) {
    log::warning(error.what());
  }
}

}  // namespace settrain
