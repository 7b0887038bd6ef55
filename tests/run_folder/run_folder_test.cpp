#include "src/run_folder/run_folder.h"

#include <optional>
#include <set>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using Catch::EndsWith;
namespace fs = std::filesystem;

namespace {

// A finished run as a real one leaves it.
void make_run(const fs::path& path) {
  const RunFolder run = RunFolder::create(path, false);
  for (const fs::path& file : {run.config(), run.provenance(), run.log(), run.metrics_jsonl(), run.metrics_csv(),
                               run.tensorboard(), run.last_checkpoint(), run.selected_checkpoint("val/top5")}) {
    std::ofstream(file) << "of the first run";
  }
}

}  // namespace

TEST_CASE("A new run folder is made with the folders above it") {
  const test::TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder / "runs" / "a/", false);
  CHECK(run.path() == folder / "runs" / "a");
  CHECK(run.config() == folder / "runs" / "a" / "config.yaml");
  CHECK(run.last_checkpoint().filename() == "last.safetensors");
  CHECK(run.selected_checkpoint("val/macro_top5") == run.path() / "checkpoints" / "best-val-macro_top5.safetensors");
  CHECK(run.selected_checkpoint("last") == run.last_checkpoint());
  CHECK(RunFolder::checkpoint_name("val/coverage@conformal:wpas(weights=a/b.csv):0.1") ==
        "best-val-coverage@conformal-wpas-weights=a-b.csv--0.1");
  CHECK(fs::is_directory(run.path() / "checkpoints"));
}

TEST_CASE("An empty folder, and one where a run never began, are taken") {
  const test::TemporaryFolder folder;
  CHECK_NOTHROW(RunFolder::create(folder.path(), false));
  CHECK(fs::exists(folder / ".settrain-run"));
  CHECK_NOTHROW(RunFolder::create(folder.path(), false));
  // The files of a process that is killed before it has recorded its config.
  folder.write("log.txt", std::string("x"));
  folder.write(".config.yaml.tmp-12", std::string("x"));
  folder.write("checkpoints/.last.safetensors.tmp-12", std::string("x"));
  CHECK_NOTHROW(RunFolder::create(folder.path(), false));
  CHECK_FALSE(fs::exists(folder / "log.txt"));
  CHECK_FALSE(fs::exists(folder / ".config.yaml.tmp-12"));
  folder.write("checkpoints/last.safetensors", std::string("x"));
  CHECK_THROWS_WITH(RunFolder::create(folder.path(), false), Contains("already holds a run"));
}

TEST_CASE("A checkpoint is found by its name, or those that are there are named") {
  const test::TemporaryFolder folder;
  make_run(folder / "a");
  const RunFolder run = RunFolder::open_existing(folder / "a");
  CHECK(run.checkpoint("last") == run.last_checkpoint());
  CHECK(run.checkpoint("best-val-top5") == run.selected_checkpoint("val/top5"));
  CHECK_THROWS_WITH(run.checkpoint("best"), Contains("has no checkpoint 'best'; it has best-val-top5, last"));
  fs::remove(run.last_checkpoint());
  fs::remove(run.selected_checkpoint("val/top5"));
  CHECK_THROWS_WITH(run.checkpoint("last"), EndsWith("it has none"));
}

TEST_CASE("A run is not overwritten unless asked") {
  const test::TemporaryFolder folder;
  make_run(folder / "a");
  CHECK_THROWS_WITH(RunFolder::create(folder / "a", false),
                    Contains("'" + (folder / "a").string() + "' already holds a run") && Contains("--overwrite") &&
                        Contains("run.dir"));
  CHECK(test::read_file(folder / "a" / "config.yaml") == "of the first run");
}

TEST_CASE("Overwriting removes what a run makes, and nothing else") {
  const test::TemporaryFolder folder;
  make_run(folder / "a");
  const std::string text = "mine";
  for (const char* name : {"a/notes.txt", "a/checkpoints/mine.safetensors", "a/checkpoints/best-of.txt", "a/.hidden",
                           "a/plots/config.yaml", "a/config.yaml.tmp-1", "a/.config.yaml.tmp-old"}) {
    folder.write(name, text);
  }
  for (const char* name :
       {"a/.metrics.csv.tmp-123", "a/checkpoints/.last.safetensors.tmp-9", "a/results.json", "a/class_counts.csv"}) {
    folder.write(name, text);
  }
  const RunFolder run = RunFolder::create(folder / "a", true);
  std::set<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(run.path())) {
    if (entry.is_regular_file()) left.insert(fs::relative(entry.path(), run.path()).string());
  }
  CHECK(left == std::set<std::string>{".settrain-run", "notes.txt", "checkpoints/mine.safetensors",
                                      "checkpoints/best-of.txt", ".hidden", "plots/config.yaml", "config.yaml.tmp-1",
                                      ".config.yaml.tmp-old"});
}

TEST_CASE("A folder that is not a run's is refused, overwrite or not, and nothing in it changes") {
  const test::TemporaryFolder folder;
  folder.write("home/config.yaml", std::string("mine"));
  for (const bool overwrite : {false, true}) {
    CHECK_THROWS_WITH(
        RunFolder::create(folder / "home", overwrite),
        Contains("home' is not a run's folder and not empty (it has 'config.yaml')") && EndsWith("run.dir"));
  }
  CHECK_THROWS_WITH(RunFolder::check_not_foreign(folder / "home"), Contains("is not a run's folder and not empty"));
  CHECK_NOTHROW(RunFolder::check_not_foreign(folder / "none"));
  CHECK(test::read_file(folder / "home" / "config.yaml") == "mine");
  CHECK(std::distance(fs::directory_iterator(folder / "home"), {}) == 1);
}

TEST_CASE("A run that was copied without its hidden files is still a run") {
  const test::TemporaryFolder folder;
  make_run(folder / "a");
  fs::remove(folder / "a" / ".settrain-run");
  CHECK_THROWS_WITH(RunFolder::create(folder / "a", false), Contains("already holds a run"));
  CHECK_NOTHROW(RunFolder::open_existing(folder / "a"));
  CHECK_NOTHROW(RunFolder::create(folder / "a", true));
}

TEST_CASE("One process at a time writes a run, and others may read it") {
  const test::TemporaryFolder folder;
  std::optional<RunFolder> run(RunFolder::create(folder / "a", false));
  std::ofstream(run->config()) << "x";
  const auto message_in_child = [&](bool overwrite) {
    return test::run_in_child([&] {
      try {
        RunFolder::create(folder / "a", overwrite);
      } catch (const RunError& error) {
        const std::string expected = "is being written by process " + std::to_string(::getppid());
        return std::string(error.what()).find(expected) != std::string::npos ? 0 : 1;
      }
      return 2;
    });
  };
  CHECK(message_in_child(false) == 0);
  CHECK(message_in_child(true) == 0);
  CHECK_NOTHROW(RunFolder::open_existing(folder / "a"));
  CHECK(test::read_file(folder / "a" / "config.yaml") == "x");
  run.reset();
  CHECK(message_in_child(true) == 2);
}

TEST_CASE("A run folder that cannot be made is an error with the reason") {
  const test::TemporaryFolder folder;
  folder.write("plain", std::string("x"));
  CHECK_THROWS_WITH(RunFolder::create(folder / "plain" / "a", false), Contains("plain/a': Not a directory"));
  CHECK_THROWS_AS(RunFolder::create(folder / "plain", true), RunError);
  CHECK(test::read_file(folder / "plain") == "x");
  CHECK_THROWS_AS(RunFolder::create("/proc/settrain-run", false), RunError);
  CHECK_THROWS_AS(RunFolder::create("", false), RunError);
}

TEST_CASE("Opening a run that is not there suggests the nearest") {
  const test::TemporaryFolder folder;
  make_run(folder / "runs" / "quickstart");
  const std::string run = (folder / "runs" / "quickstart").string();
  CHECK(RunFolder::open_existing(run + "/").path() == run);
  CHECK_THROWS_WITH(RunFolder::open_existing(folder / "runs" / "quikstart"),
                    Contains("quikstart' does not exist, did you mean '" + run + "'?"));
  CHECK_THROWS_WITH(RunFolder::open_existing(folder / "runs" / "unlike"), EndsWith("unlike' does not exist"));
  CHECK_THROWS_WITH(RunFolder::open_existing(run + "/config.yaml"),
                    Contains("is a file, not a run's folder, did you mean '" + run + "'?"));
  CHECK_THROWS_WITH(RunFolder::open_existing(run + "/checkpoints"), Contains("did you mean '" + run + "'?"));
  CHECK_THROWS_WITH(
      RunFolder::open_existing(folder / "runs"),
      Contains("runs' is not a run's folder: it has no config.yaml; there is a run inside it: '" + run + "'"));
  CHECK_THROWS_WITH(RunFolder::open_existing(folder / "none" / "at" / "all"), EndsWith("does not exist"));
}

TEST_CASE("Opening a run relative to the working folder") {
  const test::TemporaryFolder folder;
  make_run(folder / "quickstart");
  CHECK(test::run_in_child([&] {
          fs::current_path(folder.path());
          if (RunFolder::open_existing("./quickstart").path() != "quickstart") return 1;
          try {
            RunFolder::open_existing("quickstar");
          } catch (const RunError& error) {
            return std::string(error.what()) == "'quickstar' does not exist, did you mean 'quickstart'?" ? 0 : 2;
          }
          return 3;
        }) == 0);
}

TEST_CASE("A run that ended before its config was written says so") {
  const test::TemporaryFolder folder;
  RunFolder::create(folder / "a", false);
  CHECK_THROWS_WITH(RunFolder::open_existing(folder / "a"), Contains("ended before it began"));
}

TEST_CASE("A run is locked while it is gone on with, and rid of what was half-written") {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "run";
  make_run(path);
  for (const char* half : {".config.yaml.tmp-12", "checkpoints/.last.safetensors.tmp-345"}) std::ofstream(path / half);
  std::ofstream(path / ".notes.tmp-1");
  {
    const RunFolder run = RunFolder::open_to_resume(path);
    CHECK_FALSE(fs::exists(path / ".config.yaml.tmp-12"));
    CHECK_FALSE(fs::exists(path / "checkpoints/.last.safetensors.tmp-345"));
    CHECK(fs::exists(path / ".notes.tmp-1"));
    CHECK(test::read_file(run.last_checkpoint()) == "of the first run");
    CHECK_THROWS_AS(RunFolder::open_to_resume(path), RunError);
    CHECK_THROWS_AS(RunFolder::create(path, true), RunError);
  }
  CHECK_NOTHROW(RunFolder::open_to_resume(path));
  CHECK_THROWS_WITH(RunFolder::open_to_resume(folder / "rum"), Contains("did you mean"));
}

TEST_CASE("Results that no longer hold are removed, and nothing else") {
  const test::TemporaryFolder folder;
  make_run(folder / "run");
  const RunFolder run = RunFolder::open_existing(folder / "run");
  std::ofstream(run.results_json()) << "[]";
  run.remove_results();
  run.remove_results();
  CHECK_FALSE(fs::exists(run.results_json()));
  CHECK(fs::exists(run.metrics_jsonl()));
}
