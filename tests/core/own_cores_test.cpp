#include "src/core/own_cores.h"

#include <algorithm>
#include <map>
#include <thread>

#include "tests/support/catch2.h"

namespace settrain {
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

}  // namespace
}  // namespace settrain
