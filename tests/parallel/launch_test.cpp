#include "src/parallel/launch.h"

#include <map>

#include "src/core/error.h"
#include "tests/support/catch2.h"

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
const Variables kSlurm{{"SLURM_STEP_NUM_TASKS", "3"},         {"SLURM_PROCID", "2"},     {"SLURM_LOCALID", "0"},
                       {"SLURM_STEP_NODELIST", "gpu[07-08]"}, {"SLURM_JOB_ID", "31234"}, {"SLURM_STEP_ID", "0"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST_CASE("a process without a launcher is alone") {
  CHECK_FALSE(launched({}));
  CHECK_FALSE(launched({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}));
  CHECK_FALSE(launched({{"MASTER_PORT", "29500"}}));
}

TEST_CASE("torchrun's variables say which process this is") {
  const Launch launch = launched(kTorchrun).value();
  CHECK(launch.rank == 5);
  CHECK(launch.world_size == 8);
  CHECK(launch.local_rank == 1);
  CHECK(launch.host == "node7");
  CHECK(launch.port == 29500);
  CHECK_FALSE(launch.launcher_keeps_store);
  CHECK(launched(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).value().launcher_keeps_store);
}

TEST_CASE("a step of srun is told from the batch script around it") {
  const Launch launch = launched(kSlurm).value();
  CHECK(launch.rank == 2);
  CHECK(launch.world_size == 3);
  CHECK(launch.host == "gpu07");
  CHECK(launch.port == 15000 + 31234 % 15000);
  CHECK(launched(with(kSlurm, "MASTER_PORT", "4711")).value().port == 4711);
}

TEST_CASE("two steps of a job, and two jobs, do not meet") {
  const Launch first = launched(kSlurm).value(), second = launched(with(kSlurm, "SLURM_STEP_ID", "1")).value();
  const Launch other_job = launched(with(kSlurm, "SLURM_JOB_ID", "31235")).value();
  CHECK(first.port != second.port);
  CHECK(first.port != other_job.port);
  CHECK(second.port != other_job.port);
  // Where MASTER_PORT is one for all, they meet a store, but keep apart in it.
  CHECK(first.attempt == "31234.0");
  CHECK(second.attempt == "31234.1");
  CHECK(other_job.attempt == "31235.0");
}

TEST_CASE("a process takes the GPU of its number on the machine, a Slurm task also the one that it is shown") {
  Launch launch = launched(kTorchrun).value();
  CHECK(gpu_of(launch, 4) == 1);
  CHECK_THROWS_WITH(gpu_of(launch, 1),
                    "process 5 has no GPU: number 1 on a machine with 1; start as many processes as "
                    "GPUs");
  launch = launched(with(kSlurm, "SLURM_LOCALID", "2")).value();
  CHECK(gpu_of(launch, 4) == 2);
  CHECK(gpu_of(launch, 1) == 0);
  CHECK_THROWS_AS(gpu_of(launch, 2), ConfigError);
}

TEST_CASE("what is missing or no number is named") {
  CHECK_THROWS_WITH(launched(with(kTorchrun, "RANK", "8")),
                    Contains("RANK is '8': expected a whole number from 0 to 7"));
  CHECK_THROWS_WITH(launched(with(kTorchrun, "MASTER_PORT", "port")), Contains("MASTER_PORT is 'port'"));
  Variables without = kTorchrun;
  without.erase("MASTER_ADDR");
  CHECK_THROWS_WITH(launched(without), Contains("MASTER_ADDR is missing"));
  for (const std::string name : {"RANK", "WORLD_SIZE"}) {
    without = kTorchrun;
    without.erase(name);
    CHECK_THROWS_WITH(launched(without), Contains(name + " is missing"));
  }
}

TEST_CASE("the first host of a list") {
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
