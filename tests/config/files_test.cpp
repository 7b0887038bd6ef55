// Which files are read: extends, and what cannot be read.

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

TEST_CASE("a file takes over what its bases say, and has the last word") {
  const Folder folder;
  folder.write("shared/deep.yaml",
               "seed: 1\noptimizer: {lr: 1, momentum: 0.1, nesterov: false}\neval: {top_k: [7, 8]}\n");
  folder.write("shared/base.yaml", "extends: deep.yaml\noptimizer: {lr: 2, momentum: 0.2}\n");
  const Config config = folder.load("extends: shared/base.yaml\noptimizer: {lr: 3}\neval: {top_k: [9]}\n", {"seed=5"});
  CHECK(config.get<double>("optimizer.lr") == 3);
  CHECK(config.get<double>("optimizer.momentum") == 0.2);
  CHECK(config.get<bool>("optimizer.nesterov") == false);
  CHECK(config.get<Integers>("eval.top_k") == Integers{9});
  CHECK(config.get<int64_t>("seed") == 5);
  CHECK(config.get<std::string>("name") == "run");
  CHECK(config.at("optimizer.momentum").origin.text == folder.path("shared/base.yaml").string() + ":2:30");
}

TEST_CASE("problems of a file come before those of its base") {
  const Folder folder;
  folder.write("base.yaml", "sead: 1\noptimizer: {lr: x}\n");
  CHECK(folder.error("extends: base.yaml\nseeed: 1\n") ==
        "3 problems in the configuration:\n"
        "  run.yaml:2:1: seeed: unknown key, did you mean 'seed'?\n"
        "  base.yaml:1:1: sead: unknown key, did you mean 'seed'?\n"
        "  base.yaml:2:17: optimizer.lr: 'x' is not a number");
}

TEST_CASE("a missing base is reported where it is named") {
  const Folder folder;
  folder.write("base.yaml", "");
  CHECK(folder.error("seed: 1\nextends: bsae.yaml\n") ==
        "run.yaml:2:10: extends: 'bsae.yaml' does not exist (looked for beside this file), did you mean 'base.yaml'?");
}

TEST_CASE("files that extend each other are refused with the whole cycle") {
  const Folder folder;
  folder.write("a.yaml", "extends: sub/../run.yaml\n");
  CHECK(folder.error("extends: a.yaml\n") ==
        "a.yaml:1:10: extends: files extend each other: run.yaml -> a.yaml -> run.yaml");
  CHECK(folder.error("extends: run.yaml\n") == "run.yaml:1:10: extends: files extend each other: run.yaml -> run.yaml");
}

TEST_CASE("extends is the name of one file") {
  const Folder folder;
  CHECK(folder.error("extends: [a.yaml, b.yaml]\n") == "run.yaml:1:10: extends: must be the name of one file");
  CHECK(folder.error("extends: ''\n") == "run.yaml:1:10: extends: must be the name of one file");
  CHECK(folder.error("extends: ${seed}.yaml\n") ==
        "run.yaml:1:10: extends: cannot refer to keys, since it decides what they are");
  CHECK(folder.error("seed: 1\n", {"extends=a.yaml"}) == "--set extends=a.yaml: extends belongs into a file");
  folder.write("run-base.yaml", "seed: 11\n");
  CHECK(folder.load("extends: ${file}-base.yaml\n").get<int64_t>("seed") == 11);
}

TEST_CASE("a broken base stops before the rest is judged") {
  const Folder folder;
  folder.write("base.yaml", "loss: {name: noised_topk\n");
  CHECK(folder.error("extends: base.yaml\nloss: {epsilon: 1}\n") == "base.yaml:2:1: YAML: end of map flow not found");
}

TEST_CASE("a file that is missing or a folder is refused") {
  const Folder folder;
  folder.write("quickstart.yaml", "");
  CHECK(folder.error_of_file(folder.path("quickstrat.yaml")) ==
        "quickstrat.yaml: does not exist, did you mean 'quickstart.yaml'?");
  CHECK_THROWS_WITH(load(sample_schema(), "/nowhere/at/all.yaml", {}), "/nowhere/at/all.yaml: does not exist");
  folder.write("sub/x.yaml", "");
  CHECK(folder.error_of_file(folder.path("sub")) == "sub: is a folder, not a file");
}

}  // namespace settrain::config::test
