#include "src/core/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"

using namespace settrain;

namespace {

using Variables = std::map<std::string, std::string>;

int64_t cores(const Variables& variables) {
  return own_cores([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

int64_t cores_of_step(const std::string& tasks, const std::string& machine, const std::string& cpus) {
  return cores({{"SLURM_STEP_NUM_TASKS", "7"},
                {"SLURM_STEP_TASKS_PER_NODE", tasks},
                {"SLURM_NODEID", machine},
                {"SLURM_CPUS_ON_NODE", cpus}});
}

}  // namespace

TEST_CASE("a process has the cores of its Slurm task, of which launched ones have equal shares") {
  const auto all = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  CHECK(cores({}) == all);
  CHECK(cores({{"LOCAL_WORLD_SIZE", "100000"}}) == 1);
  CHECK(cores({{"SLURM_CPUS_PER_TASK", "12"}}) == 12);
  CHECK(cores({{"SLURM_CPUS_PER_TASK", "12"}, {"SLURM_STEP_NUM_TASKS", "3"}}) == 12);
  // torchrun in a step of one task a machine.
  CHECK(cores({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_CPUS_PER_TASK", "12"}, {"LOCAL_WORLD_SIZE", "4"}}) == 3);
}

TEST_CASE("Slurm tasks that were given no number of cores share those of their step on the machine") {
  CHECK(cores_of_step("2(x3),1", "0", "16") == 8);
  CHECK(cores_of_step("2(x3),1", "2", "16") == 8);
  CHECK(cores_of_step("2(x3),1", "3", "16") == 16);
  CHECK(cores_of_step("1,6", "1", "16") == 2);
  CHECK(cores_of_step("7", "0", "4") == 1);
  // Where the list does not say, all tasks may be here.
  for (const char* list : {"", "x", "2(x", "0(x2)", "2(x3)"}) {
    CAPTURE(list);
    CHECK(cores_of_step(list, "3", "28") == 4);
  }
}

namespace {

// Runs `work` in a child whose stderr is a new terminal of 123 columns.
template <class Work>
int run_on_terminal(Work work) {
  return test::run_in_child([&] {
    const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (controller < 0 || ::grantpt(controller) != 0 || ::unlockpt(controller) != 0) return 100;
    const int terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
    const winsize size{40, 123, 0, 0};
    if (::ioctl(terminal, TIOCSWINSZ, &size) != 0 || ::dup2(terminal, STDERR_FILENO) < 0) return 101;
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
    return work();
  });
}

}  // namespace

TEST_CASE("A terminal is recognised, with its width") {
  CHECK(run_on_terminal(
            [] { return stderr_is_terminal() && stderr_has_colour() && terminal_columns() == 123 ? 0 : 1; }) == 0);
}

TEST_CASE("A dumb terminal and one without TERM take no control sequences") {
  CHECK(run_on_terminal([] {
          ::setenv("TERM", "dumb", 1);
          if (stderr_is_terminal() || stderr_has_colour()) return 1;
          ::unsetenv("TERM");
          return stderr_is_terminal() ? 2 : 0;
        }) == 0);
}

TEST_CASE("NO_COLOR keeps the terminal and takes the colour") {
  CHECK(run_on_terminal([] {
          ::setenv("NO_COLOR", "1", 1);
          return stderr_is_terminal() && !stderr_has_colour() ? 0 : 1;
        }) == 0);
}

TEST_CASE("A file is no terminal, and 80 columns wide") {
  CHECK(test::run_in_child([] {
          ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
          ::setenv("TERM", "xterm", 1);
          return !stderr_is_terminal() && !stderr_has_colour() && terminal_columns() == 80 ? 0 : 1;
        }) == 0);
}
