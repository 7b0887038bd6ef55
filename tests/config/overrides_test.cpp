
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

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
}

TEST_CASE("overrides can have places of their own") {
  const Schema schema{{{"", "", {free_key<int64_t>("seed", 1)}, "", "", {}}}, {}};
  CHECK_THROWS_WITH(config::load(schema, {}, {"seed=2", "sed=3"}, {"4.yaml:1:2", "4.yaml:2:2"}),
                    Catch::StartsWith("4.yaml:2:2: sed: unknown key"));
  CHECK_THROWS_WITH(config::load(schema, {}, {"seed=2", "sed=3"}, {"4.yaml:1:2"}), Catch::StartsWith("--set sed=3: "));
}

TEST_CASE("what is no override is refused") {
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
