#include <catch2/catch.hpp>

#include "tests/config/sample.h"

namespace settrain::config::test {

TEST_CASE("overrides are YAML values on top of the file", "[fast]") {
  const Folder folder;
  const Config config =
      folder.load("optimizer: {lr: 1}\neval: {top_k: [1]}\n",
                  {"optimizer.lr=2", "eval.top_k=[2, 3]", "name=\"a b\"", "run.dir=runs/${name}=x", "select=[]"});
  CHECK(config.get<double>("optimizer.lr") == 2);
  CHECK(config.get<Integers>("eval.top_k") == Integers{2, 3});
  CHECK(config.get<std::string>("run.dir") == "runs/a b=x");
  CHECK(config.get<Texts>("select").empty());
}

TEST_CASE("the last override of a key wins", "[fast]") {
  const Folder folder;
  const Config config = folder.load("", {"optimizer.lr=2", "optimizer.lr=3"});
  CHECK(config.get<double>("optimizer.lr") == 3);
  CHECK(config.at("optimizer.lr").origin.text == "--set optimizer.lr=3");
}

TEST_CASE("overrides of a variant and of its keys may come in any order", "[fast]") {
  const Folder folder;
  CHECK(folder.load("", {"loss.k=3", "loss.name=noised_topk"}).get<int64_t>("loss.k") == 3);
}

TEST_CASE("what is no override is refused", "[fast]") {
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

TEST_CASE("all overrides are reported, in their order", "[fast]") {
  const Folder folder;
  CHECK(folder.error("seed: -1\n", {"optimizer.lr=no", "eval.top_k=5"}) ==
        "3 problems in the configuration:\n"
        "  run.yaml:1:7: seed: -1 is out of range, must be >= 0\n"
        "  --set optimizer.lr=no: optimizer.lr: 'no' is not a number\n"
        "  --set eval.top_k=5: eval.top_k: '5' is not a list of integers, write [5]");
}

}  // namespace settrain::config::test
