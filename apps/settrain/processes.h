// The processes of a training, as the program's commands see them.
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

/// Runs this command line in so many processes on this machine, see start_processes().
int repeat_in_processes(const CommandLine& line, int64_t processes);

/// This process among those that a launcher started, or alone.
class Processes {
 public:
  /// Reads the environment; from now on the log speaks as this process. Throws ConfigError as launch_from().
  Processes();

  bool are_launched() const { return launch_.has_value(); }
  bool is_first() const { return !launch_ || launch_->rank == 0; }
  int64_t count() const { return launch_ ? launch_->world_size : 1; }

  /// find_device(); of several processes on a machine each has a GPU of its own, unless a number is named. Throws
  /// ConfigError where there are fewer.
  at::Device device(const std::string& name) const;

  /// Waits for the others, as the config's `parallel` says.
  std::shared_ptr<ProcessGroup> connect(const config::Config& config, at::Device device);

  /// Does the work. An error of it goes to the other processes, and to the file that TORCHELASTIC_ERROR_FILE names,
  /// before it is thrown on.
  int run(const std::function<int()>& work);

 private:
  void report(const std::string& message);

  std::optional<Launch> launch_;
  std::shared_ptr<ProcessGroup> group_;
};

}  // namespace settrain
