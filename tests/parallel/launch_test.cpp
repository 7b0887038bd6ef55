#include "src/parallel/launch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <thread>

#include "src/core/error.h"

namespace settrain {
namespace {

using Catch::Contains;
using Variables = std::map<std::string, std::string>;

std::optional<Launch> launched(const Variables& variables) {
  return launch_from([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

const Variables kTorchrun{{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "node7"},
                          {"MASTER_PORT", "29500"}};
const Variables kSlurm{{"SLURM_STEP_NUM_TASKS", "3"},
                       {"SLURM_PROCID", "2"},
                       {"SLURM_LOCALID", "0"},
                       {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                       {"SLURM_JOB_ID", "31234"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST_CASE("a process without a launcher is alone", "[fast]") {
  CHECK_FALSE(launched({}));
  CHECK_FALSE(launched({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}));
  CHECK_FALSE(launched({{"MASTER_PORT", "29500"}}));
}

TEST_CASE("torchrun's variables say which process this is", "[fast]") {
  const Launch launch = launched(with(kTorchrun, "TORCHELASTIC_RUN_ID", "none")).value();
  CHECK(launch.launcher == "torchrun");
  CHECK(launch.rank == 5);
  CHECK(launch.world == 8);
  CHECK(launch.local_rank == 1);
  CHECK(launch.local_world == 4);
  CHECK(launch.host == "node7");
  CHECK(launch.port == 29500);
  CHECK_FALSE(launch.launcher_keeps_store);
  CHECK(launched(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).value().launcher_keeps_store);
}

TEST_CASE("a step of srun is told from the batch script around it", "[fast]") {
  const Launch launch = launched(kSlurm).value();
  CHECK(launch.launcher == "slurm");
  CHECK(launch.rank == 2);
  CHECK(launch.world == 3);
  CHECK(launch.host == "gpu07");
  CHECK(launch.port == 15000 + 31234 % 15000);
  CHECK(launched(with(kSlurm, "MASTER_PORT", "4711")).value().port == 4711);
}

TEST_CASE("what is missing or no number is named", "[fast]") {
  CHECK_THROWS_WITH(launched(with(kTorchrun, "RANK", "8")),
                    Contains("RANK is '8': expected a whole number from 0 to 7"));
  CHECK_THROWS_WITH(launched(with(kTorchrun, "MASTER_PORT", "port")), Contains("MASTER_PORT is 'port'"));
  Variables without = kTorchrun;
  without.erase("MASTER_ADDR");
  CHECK_THROWS_WITH(launched(without), Contains("MASTER_ADDR is missing"));
}

TEST_CASE("a process has the cores of its Slurm task, of which launched ones have equal shares", "[fast]") {
  const auto cores = [](const Variables& variables) {
    return own_cores([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  const auto all = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  CHECK(cores({}) == all);
  CHECK(cores({{"LOCAL_WORLD_SIZE", "100000"}}) == 1);
  CHECK(cores({{"SLURM_CPUS_PER_TASK", "12"}}) == 12);
  CHECK(cores(with(kSlurm, "SLURM_CPUS_PER_TASK", "12")) == 12);
  // torchrun in a step of one task a machine.
  CHECK(cores({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_CPUS_PER_TASK", "12"}, {"LOCAL_WORLD_SIZE", "4"}}) == 3);
}

TEST_CASE("the first host of a list", "[fast]") {
  CHECK(first_host("node1") == "node1");
  CHECK(first_host("node1,node2") == "node1");
  CHECK(first_host("node[03-07,9],other") == "node03");
  CHECK(first_host("node[9]") == "node9");
  CHECK(first_host("rack[1-2]-a,b") == "rack1-a");
  CHECK_THROWS_AS(first_host(""), ConfigError);
  CHECK_THROWS_AS(first_host("node[03"), ConfigError);
}

}  // namespace
}  // namespace settrain
