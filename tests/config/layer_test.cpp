#include "src/config/load.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

// Files: extends, and files that cannot be read.

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

TEST_CASE("a base with a shell's ~ is told that it is not replaced") {
  const Folder folder;
  CHECK_THAT(folder.error("extends: ~/base.yaml\n"), Catch::Contains("run.yaml:1:10") && Catch::Contains("; ~ is not"));
  CHECK_THAT(folder.error("extends: base.yaml\n"), !Catch::Contains("~"));
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

TEST_CASE("overrides are YAML values on top of the file") {
  const Folder folder;
  const Config config =
      folder.load("optimizer: {lr: 1}\neval: {top_k: [1]}\n",
                  {"optimizer.lr=2", "eval.top_k=[2, 3]", "name=\"a b\"", "run.dir=runs/${name}=x", "select=[]"});
  CHECK(config.get<double>("optimizer.lr") == 2);
  CHECK(config.get<Integers>("eval.top_k") == Integers{2, 3});
  CHECK(config.get<std::string>("run.dir") == "runs/a b=x");
  CHECK(config.get<Texts>("select").empty());
}

TEST_CASE("the last override of a key wins") {
  const Folder folder;
  const Config config = folder.load("", {"optimizer.lr=2", "optimizer.lr=3"});
  CHECK(config.get<double>("optimizer.lr") == 3);
  CHECK(config.at("optimizer.lr").origin.text == "--set optimizer.lr=3");
}

TEST_CASE("overrides of a variant and of its keys may come in any order") {
  const Folder folder;
  CHECK(folder.load("", {"loss.k=3", "loss.name=noised_topk"}).get<int64_t>("loss.k") == 3);
}

TEST_CASE("a section is set to a word that all of its keys take") {
  const auto size = [](const char* name) { return free_key<int64_t>(name, 5).word("any", -1); };
  const Schema schema{
      {{"data", "", {size("expected.train"), size("expected.test"), free_key<int64_t>("batch", 8)}, "", "", {}}}, {}};
  const Config config = config::load(schema, {}, {"data.expected=any", "data.expected.test=7"});
  CHECK(config.get<int64_t>("data.expected.train") == -1);
  CHECK(config.get<int64_t>("data.expected.test") == 7);
  CHECK(config.at("data.expected.train").origin.text == "--set data.expected=any");
  for (const char* wrong : {"data=any", "data.expected=all", "data.expected=3", "data.expected="}) {
    CHECK_THROWS_WITH(config::load(schema, {}, {wrong}), Catch::Contains("is a section, set its keys one by one"));
  }
  // A file has the keys one by one.
  const Folder folder;
  folder.write("a.yaml", "data: {expected: any}\n");
  CHECK_THROWS_WITH(config::load(schema, folder.path("a.yaml"), {}),
                    Catch::Contains("data.expected") && Catch::Contains("{train: any, test: any}"));
}

TEST_CASE("overrides can have places of their own") {
  const Schema schema{{{"", "", {free_key<int64_t>("seed", 1)}, "", "", {}}}, {}};
  CHECK_THROWS_WITH(config::load(schema, {}, {"seed=2", "sed=3"}, {"4.yaml:1:2", "4.yaml:2:2"}),
                    Catch::StartsWith("4.yaml:2:2: sed: unknown key"));
  CHECK_THROWS_WITH(config::load(schema, {}, {"seed=2", "sed=3"}, {"4.yaml:1:2"}), Catch::StartsWith("--set sed=3: "));
}

TEST_CASE("texts that are no overrides are refused") {
  const Folder folder;
  CHECK(folder.error("", {"seed"}) == "--set seed: must be key.path=value");
  CHECK(folder.error("", {"=1"}) == "--set =1: must be key.path=value");
  CHECK(folder.error("", {"seed="}) == "--set seed=: seed: has no value");
  CHECK(folder.error("", {"seed=[1"}) == "--set seed=[1: YAML: end of sequence flow not found");
  CHECK(folder.error("", {"seed={a: 1}"}) == "--set seed={a: 1}: seed: is a map, but the key takes a value");
  CHECK(folder.error("", {"optimizer={lr: 1}"}) ==
        "--set optimizer={lr: 1}: optimizer: is a section, set its keys one by one: --set optimizer.KEY=VALUE");
  CHECK(folder.error("", {"optimiser.lr=1"}) ==
        "--set optimiser.lr=1: optimiser.lr: unknown key, did you mean 'optimizer.lr'?");
  CHECK(folder.error("", {"lr=1"}) == "--set lr=1: lr: unknown key, did you mean 'optimizer.lr'?");
  CHECK(folder.error("", {"seed=\xFF"}) == "--set seed=\\xFF: not UTF-8 text");
}

TEST_CASE("all overrides are reported, in their order") {
  const Folder folder;
  CHECK(folder.error("seed: -1\n", {"optimizer.lr=no", "eval.top_k=5"}) ==
        "3 problems in the configuration:\n"
        "  run.yaml:1:7: seed: -1 is out of range, must be >= 0\n"
        "  --set optimizer.lr=no: optimizer.lr: 'no' is not a number\n"
        "  --set eval.top_k=5: eval.top_k: '5' is not a list of integers, write [5]");
}

}  // namespace settrain::config::test
