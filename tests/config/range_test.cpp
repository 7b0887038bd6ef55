#include "src/config/range.h"

#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

TEST_CASE("a value out of range names range and unit") {
  const Folder folder;
  CHECK(folder.error("optimizer: {lr: -1}\n") ==
        "run.yaml:1:17: optimizer.lr: -1 is out of range, must be > 0 (1/step)");
  CHECK(folder.error("optimizer: {momentum: 1}\n") ==
        "run.yaml:1:23: optimizer.momentum: 1 is out of range, must be >= 0 and < 1");
  CHECK(folder.error("data: {batch_size: 0}\n") ==
        "run.yaml:1:20: data.batch_size: 0 is out of range, must be >= 1 (images)");
  CHECK(folder.error("loss: {name: noised_topk_imbalanced, epsilon: 10.5}\n") ==
        "run.yaml:1:47: loss.epsilon: 10.5 is out of range, must be > 0 and <= 10");
}

TEST_CASE("bounds are included or not, as declared") {
  const Folder folder;
  CHECK(folder.load("optimizer: {momentum: 0, lr: 4.9e-324}\n").get<double>("optimizer.momentum") == 0);
  CHECK(folder.load("loss: {name: noised_topk_imbalanced, epsilon: 10}\n").get<double>("loss.epsilon") == 10);
  CHECK(folder.error("optimizer: {lr: 0}\n") == "run.yaml:1:17: optimizer.lr: 0 is out of range, must be > 0 (1/step)");
}

TEST_CASE("a word's meaning is no value that one may write") {
  const Folder folder;
  CHECK(folder.error("data: {workers: -1}\n") ==
        "run.yaml:1:17: data.workers: -1 is out of range, must be >= 0 or 'auto'");
  CHECK(folder.load("data: {workers: 'auto'}\n").get<int64_t>("data.workers") == -1);
}

TEST_CASE("every element of a list is checked, at its own place") {
  const Folder folder;
  CHECK(folder.error("eval: {top_k: [1, 0, five], splits: [val, tset]}\n") ==
        "3 problems in the configuration:\n"
        "  run.yaml:1:19: eval.top_k: 0 is out of range, must be >= 1 (classes)\n"
        "  run.yaml:1:22: eval.top_k: 'five' is not an integer\n"
        "  run.yaml:1:43: eval.splits: 'tset' is not one of train, val, test, did you mean 'test'?");
}

TEST_CASE("what must not be empty is not") {
  const Folder folder;
  CHECK(folder.error("eval: {top_k: []}\n") == "run.yaml:1:15: eval.top_k: must not be empty");
  CHECK(folder.error("name: ''\n") == "run.yaml:1:7: name: must not be empty");
}

TEST_CASE("a key is optional where it accepts its default") {
  CHECK(is_optional(free_key("a", int64_t{-1}).at_least(0).word("auto", -1)));
  CHECK_FALSE(is_optional(free_key("a", int64_t{-1}).at_least(0)));
  CHECK_FALSE(is_optional(free_key("a", 0.0).above(0)));
  CHECK_FALSE(is_optional(free_key("a", Texts{}).not_empty()));
  CHECK_FALSE(is_optional(free_key("a", std::string("x")).one_of({"y"})));
  CHECK(is_optional(free_key("a", std::string("${env:A:-y}")).one_of({"y"})));
  CHECK(is_optional(free_key("a", Reals{1, 2}).at_least(1)));
}

}  // namespace settrain::config::test
