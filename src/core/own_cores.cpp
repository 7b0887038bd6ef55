#include "src/core/own_cores.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>

namespace settrain {
namespace {

// The number that a text begins with, which is cut off it; -1 where there is none.
int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return problem == std::errc() ? number : -1;
}

// A positive number, or `otherwise`: who launches has checked what matters.
int64_t count_in(const Environment& environment, const char* name, int64_t otherwise) {
  const std::string value = environment(name).value_or("");
  std::string_view text = value;
  const int64_t number = take_number(text);
  return number > 0 ? number : otherwise;
}

// Of the machines' tasks "2(x3),1" the number on that machine; -1 where the list does not say.
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

int64_t cores_of_machine() {
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

int64_t cores_of_slurm_task(const Environment& environment, int64_t tasks_of_step) {
  const int64_t tasks = tasks_on(std::max<int64_t>(0, count_in(environment, "SLURM_NODEID", 0)),
                                 environment("SLURM_STEP_TASKS_PER_NODE").value_or(""));
  return count_in(environment, "SLURM_CPUS_ON_NODE", cores_of_machine()) / (tasks > 0 ? tasks : tasks_of_step);
}

}  // namespace

int64_t own_cores(const Environment& environment) {
  const int64_t tasks = count_in(environment, "SLURM_STEP_NUM_TASKS", 1);
  const int64_t otherwise = tasks > 1 ? cores_of_slurm_task(environment, tasks) : cores_of_machine();
  const int64_t cores = count_in(environment, "SLURM_CPUS_PER_TASK", otherwise);
  return std::max<int64_t>(1, cores / count_in(environment, "LOCAL_WORLD_SIZE", 1));
}

}  // namespace settrain
