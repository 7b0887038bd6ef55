#include "src/studies/sweep/slurm_script.h"

#include <fmt/format.h>

#include <fstream>

#include "src/core/child_process.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;
using Options = std::vector<std::string>;

// Runs the script by bash as Slurm would start this element of the array.
ChildEnd run_element(const std::string& script, const std::string& element, const Options& environment = {}) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "slurm.sbatch") << script;
  Options command{"env", "SLURM_ARRAY_TASK_ID=" + element};
  command.insert(command.end(), environment.begin(), environment.end());
  command.insert(command.end(), {"bash", (folder / "slurm.sbatch").string()});
  return run_child({.command = command, .package = "bash"});
}

TEST_CASE("options of sbatch keep their values") {
  CHECK(split_slurm_options("").empty());
  CHECK(split_slurm_options(" --time=2:00:00  -p gpu\n--gres gpu:1 -c8") ==
        Options{"--time=2:00:00", "-p gpu", "--gres gpu:1", "-c8"});
  CHECK_THROWS_WITH(split_slurm_options("gpu --time=1"), Contains("'gpu' is no option of sbatch"));
}

TEST_CASE("options that the script itself sets are refused with the reason") {
  CHECK_THROWS_WITH(split_slurm_options("-t 5 --array=1-3"), Contains("--array=1-3: an element is a run"));
  for (const char* option :
       {"-a1-3", "-a 1", "-o log", "--output x", "--error=x", "-D /", "--wrap=ls", "--open-mode=append"}) {
    CHECK_THROWS_AS(split_slurm_options(option), ConfigError);
  }
  CHECK(split_slurm_options("--account=a --exclusive -A b -C avx512 -d afterok:1").size() == 5);
}

TEST_CASE("the cores of a task are read from the options") {
  CHECK(cpus_per_task({}) == 1);
  CHECK(cpus_per_task({"--cpus-per-gpu=3", "-C 5", "--comment=-c4"}) == 1);
  for (const char* option : {"--cpus-per-task=8", "--cpus-per-task 8", "-c 8", "-c8"}) {
    CHECK(cpus_per_task({"-p gpu", option}) == 8);
  }
  CHECK_THROWS_WITH(cpus_per_task({"-c many"}), Contains("-c many: expected a number of cores"));
  CHECK_THROWS_AS(cpus_per_task({"-c 0"}), ConfigError);
  CHECK_THROWS_AS(cpus_per_task({"--cpus-per-task"}), ConfigError);
}

TEST_CASE("the options stand before the first command, the given ones last") {
  const std::string script = slurm_script(
      {.program = "/bin/settrain", .folder = "/", .logs = "/my sweeps/50%", .options = {"--time=5", "-p gpu"}},
      {{"a", {"train"}}, {"b", {"train"}}});
  CHECK_THAT(script, Catch::StartsWith("#!/bin/bash\n"));
  const std::string options = script.substr(0, script.find("\n\n"));
  CHECK_THAT(options, Contains("\n#SBATCH --array=1-2\n"));
  CHECK_THAT(options, Contains("\n#SBATCH --output=\"/my sweeps/50%%/%A_%a.log\"\n"));
  CHECK_THAT(options, Catch::EndsWith("\n#SBATCH --signal=B:TERM@120\n#SBATCH --time=5\n#SBATCH -p gpu"));
  CHECK_THROWS_WITH(slurm_script({.program = "", .folder = "/", .logs = "/a\"b", .options = {}}, {}),
                    Contains("Slurm cannot write to '/a\"b'"));
}

TEST_CASE("an element runs its own words as they are, in the folder of the sweep") {
  const test::TemporaryFolder folder;
  const std::string words = "it's $HOME `ls` \"x\" \\ * ; # &\n}}{";
  const std::string script =
      slurm_script({.program = "/usr/bin/printf", .folder = folder.path(), .logs = "/logs", .options = {}},
                   {{"a", {"<%s>", "first"}}, {"b", {"<%s>", words, ""}}});
  CHECK(run_element(script, "1").printed == "<first>");
  CHECK(run_element(script, "2").printed == "<" + words + "><>");
  const ChildEnd none = run_element(script, "3");
  CHECK(none.code == 2);
  CHECK(none.printed == "there are elements 1 to 2, not '3'");
  const std::string where =
      slurm_script({.program = "/bin/pwd", .folder = folder.path(), .logs = "/logs", .options = {}}, {{"a", {"-P"}}});
  CHECK(run_element(where, "1").printed == std::filesystem::canonical(folder.path()).string());
}

TEST_CASE("an element becomes its run's process") {
  const std::string script = slurm_script({.program = "/bin/sh", .folder = "/", .logs = "/logs", .options = {}},
                                          {{"a", {"-c", "kill -TERM $$"}}});
  CHECK(run_element(script, "1").code == 128 + 15);
}

TEST_CASE("of several tasks srun starts the processes, which Slurm then signals itself") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "srun") << "#!/bin/sh\necho \"$@\"\n";
  std::filesystem::permissions(folder / "srun", std::filesystem::perms::owner_all);
  const std::string path = fmt::format("PATH={}:/usr/bin:/bin", folder.path().string());
  for (const char* option : {"--ntasks=2", "-n 2", "-n2", "--ntasks-per-node 4"}) {
    const std::string script = slurm_script({.program = "/bin/x", .folder = "/", .logs = "/logs", .options = {option}},
                                            {{"a", {"two words"}}});
    CHECK_THAT(script, Contains("#SBATCH --signal=TERM@120\n"));
    CHECK(run_element(script, "1", {path}).printed == "--kill-on-bad-exit=1 /bin/x two words");
    CHECK(run_element(script, "1", {path, "SLURM_CPUS_PER_TASK=4"}).printed ==
          "--kill-on-bad-exit=1 --cpus-per-task=4 /bin/x two words");
  }
}

}  // namespace
}  // namespace settrain
