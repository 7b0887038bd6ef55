#include "src/core/process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>  // __GLIBC__
#include <string_view>
#include <thread>
#include <tuple>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace settrain {
namespace {

// Cuts off the number that a text begins with, and returns it; -1 where there is none.
int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return problem == std::errc() ? number : -1;
}

// The positive number that a variable begins with, or `otherwise`: the launcher has checked what matters.
int64_t count_in(const Environment& environment, const char* name, int64_t otherwise) {
  const std::string value = environment(name).value_or("");
  std::string_view text = value;
  const int64_t number = take_number(text);
  return number > 0 ? number : otherwise;
}

// The number of tasks on a machine, from Slurm's list "2(x3),1"; -1 where the list does not say.
int64_t tasks_on(int64_t machine, std::string_view list) {
  while (!list.empty()) {
    const int64_t tasks = take_number(list);
    int64_t machines = 1;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      machines = take_number(list);
      if (list.starts_with(')')) list.remove_prefix(1);
    }
    if (tasks < 1 || machines < 1) return -1;
    if (machine < machines) return tasks;
    machine -= machines;
    if (list.starts_with(',')) list.remove_prefix(1);
  }
  return -1;
}

// The width of the terminal behind a stream; 0 where it is no terminal, or one that does not say.
int columns_of(int stream) {
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::filesystem::path program_file() {
  std::error_code ignored;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  const std::string removed = " (deleted)";  // as the system says it
  if (path.ends_with(removed)) path.resize(path.size() - removed.size());
  return path;
}

int64_t own_cores(const Environment& environment) {
  int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  if (const int64_t tasks_of_step = count_in(environment, "SLURM_STEP_NUM_TASKS", 1); tasks_of_step > 1) {
    const int64_t tasks = tasks_on(std::max<int64_t>(0, count_in(environment, "SLURM_NODEID", 0)),
                                   environment("SLURM_STEP_TASKS_PER_NODE").value_or(""));
    cores = count_in(environment, "SLURM_CPUS_ON_NODE", cores) / (tasks > 0 ? tasks : tasks_of_step);
  }
  cores = count_in(environment, "SLURM_CPUS_PER_TASK", cores);
  return std::max<int64_t>(1, cores / count_in(environment, "LOCAL_WORLD_SIZE", 1));
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);         // large blocks come from the heap, too,
  mallopt(M_TRIM_THRESHOLD, -1);  // which never shrinks
  mallopt(M_TOP_PAD, 64 << 20);   // and grows by 64 MiB at least
#endif
}

void share_arenas() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);
#endif
}

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void keep_onednn_from_amx() {
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", /*overwrite=*/0);
}

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given out: this one, since those below it are open by now.
    if (::fcntl(stream, F_GETFD) < 0) std::ignore = ::open("/dev/null", O_RDWR);
  }
}

bool stderr_is_terminal() {
  const std::string term = environment_variable("TERM").value_or("");
  return ::isatty(STDERR_FILENO) == 1 && !term.empty() && term != "dumb";
}

bool stderr_has_colour() {
  return stderr_is_terminal() && environment_variable("NO_COLOR").value_or("").empty();
}

int terminal_columns() {
  const int columns = columns_of(STDERR_FILENO);
  return columns > 0 ? columns : 80;
}

int stdout_columns() {
  return columns_of(STDOUT_FILENO);
}

}  // namespace settrain
