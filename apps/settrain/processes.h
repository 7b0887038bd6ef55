// The processes of one training.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/config/config.h"
#include "src/parallel/launch.h"
#include "src/parallel/process_group.h"

namespace settrain {

struct CommandLine;

/// Runs this command line in that many processes on this machine; see start_processes().
int repeat_in_processes(const CommandLine& line, int64_t processes);

/// This process among those that a launcher started, or alone.
class Processes {
 public:
  /// Reads the environment, and sets the process that the log names. Throws ConfigError as launch_from().
  Processes();

  bool are_launched() const { return launch_.has_value(); }
  bool is_first() const { return !launch_ || launch_->rank == 0; }
  int64_t count() const { return launch_ ? launch_->world_size : 1; }

  /// find_device(). Each of several processes on a machine gets a GPU of its own, unless `name` has a number. Throws
  /// ConfigError where there are fewer GPUs.
  at::Device device(const std::string& name) const;

  /// Connects to the other processes by the config's `parallel`, and waits for them.
  std::shared_ptr<ProcessGroup> connect(const config::Config& config, at::Device device);

  /// Calls work(). Its errors are reported to the other processes, and in the file that TORCHELASTIC_ERROR_FILE names,
  /// before they are thrown on.
  int run(const std::function<int()>& work);

 private:
  void report(const std::string& message);

  std::optional<Launch> launch_;
  std::shared_ptr<ProcessGroup> group_;
};

}  // namespace settrain
