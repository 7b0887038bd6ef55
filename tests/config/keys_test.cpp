// Keys that are unknown, misplaced, repeated or misshapen.

#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

TEST_CASE("an unknown key gets the nearest name") {
  const Folder folder;
  CHECK(folder.error("optimizer:\n  momentun: 0.9\n") ==
        "run.yaml:2:3: optimizer.momentun: unknown key, did you mean 'optimizer.momentum'?");
  CHECK(folder.error("optimizr: {lr: 1}\n") == "run.yaml:1:1: optimizr: unknown key, did you mean 'optimizer'?");
  CHECK(folder.error("data: {lable_noise: {kind: none}}\n") ==
        "run.yaml:1:8: data.lable_noise: unknown key, did you mean 'data.label_noise'?");
}

TEST_CASE("an unknown key gets the section where the name belongs") {
  const Folder folder;
  CHECK(folder.error("lr: 0.1\n") == "run.yaml:1:1: lr: unknown key, did you mean 'optimizer.lr'?");
  CHECK(folder.error("eval: {nesterov: true}\n") ==
        "run.yaml:1:8: eval.nesterov: unknown key, did you mean 'optimizer.nesterov'?");
}

TEST_CASE("an unknown key without a near name gets the list's command") {
  const Folder folder;
  CHECK(folder.error("flux_capacitor: 1\n") ==
        "run.yaml:1:1: flux_capacitor: unknown key; `settrain config keys` lists them all");
}

TEST_CASE("suggestions are keys of the chosen variant") {
  const Folder folder;
  CHECK(folder.error("loss: {name: noised_topk_imbalanced, max_margn: 1}\n") ==
        "run.yaml:1:38: loss.max_margn: unknown key, did you mean 'loss.max_margin'?");
  CHECK(folder.error("loss: {name: noised_topk, max_margn: 1}\n") ==
        "run.yaml:1:27: loss.max_margn: unknown key; `settrain config keys` lists them all");
}

TEST_CASE("a key of another variant names its owners") {
  const Folder folder;
  CHECK(folder.error("loss:\n  epsilon: 1\n") ==
        "run.yaml:2:12: loss.epsilon: not a key of loss cross_entropy (it belongs to noised_topk, "
        "noised_topk_imbalanced)");
  CHECK(folder.error("loss: {max_margin: 1, name: noised_topk}\n") ==
        "run.yaml:1:20: loss.max_margin: not a key of loss noised_topk (it belongs to noised_topk_imbalanced)");
}

TEST_CASE("an unknown variant is one problem, its keys are not judged") {
  const Folder folder;
  CHECK(folder.error("loss: {name: noised_topkk, epsilon: 1}\n") ==
        "run.yaml:1:14: loss.name: 'noised_topkk' is not one of cross_entropy, noised_topk, noised_topk_imbalanced, "
        "did you mean "
        "'noised_topk'?");
  CHECK(folder.error("loss: {name: [noised_topk]}\n") == "run.yaml:1:14: loss.name: is a list, must be one name");
}

TEST_CASE("a repeated key names both places") {
  const Folder folder;
  CHECK(folder.error("seed: 1\nseed: 2\n") == "run.yaml:2:1: seed: given twice, first at run.yaml:1:1");
  CHECK(folder.error("optimizer: {lr: 1, lr: 1}\n") ==
        "run.yaml:1:20: optimizer.lr: given twice, first at run.yaml:1:13");
  CHECK(folder.error("optimizer: {lr: 1}\nseed: 1\noptimizer: {moment: 1}\n") ==
        "2 problems in the configuration:\n"
        "  run.yaml:3:1: optimizer: given twice, first at run.yaml:1:1\n"
        "  run.yaml:3:13: optimizer.moment: unknown key, did you mean 'optimizer.momentum'?");
}

TEST_CASE("an empty value is an error") {
  const Folder folder;
  CHECK(folder.error("optimizer:\n  lr:\n  momentum: ~\n") ==
        "2 problems in the configuration:\n"
        "  run.yaml:2:3: optimizer.lr: has no value\n"
        "  run.yaml:3:3: optimizer.momentum: has no value");
  CHECK(folder.error("name: null\n") == "run.yaml:1:1: name: has no value");
  CHECK(folder.error("optimizer:\nseed: 1\n") ==
        "run.yaml:1:1: optimizer: is an empty section, give it keys or remove it");
  CHECK(folder.error("select: [a, ~]\n") == "run.yaml:1:13: select: elements of a list must be single values");
}

TEST_CASE("maps, lists and values are told apart") {
  const Folder folder;
  CHECK(folder.error("optimizer: 5\n") == "run.yaml:1:12: optimizer: is a section, it must be a map of keys");
  CHECK(folder.error("optimizer: [1]\n") == "run.yaml:1:12: optimizer: is a section, it must be a map of keys");
  CHECK(folder.error("loss: noised_topk\n") ==
        "run.yaml:1:7: loss: is a section, it must be a map of keys, write {name: noised_topk}");
  CHECK(folder.error("optimizer: {lr: {a: 1}}\n") ==
        "run.yaml:1:17: optimizer.lr: is a map, but the key takes a value");
  CHECK(folder.error("eval: {top_k: [[1]]}\n") ==
        "run.yaml:1:16: eval.top_k: elements of a list must be single values");
  CHECK(folder.error("optimizer: {lr: [1]}\n") == "run.yaml:1:17: optimizer.lr: a list is not one number");
  CHECK(folder.error("eval: {top_k: 5}\n") == "run.yaml:1:15: eval.top_k: '5' is not a list of integers, write [5]");
}

TEST_CASE("keys are names in nested maps") {
  const Folder folder;
  CHECK(folder.error("optimizer.lr: 1\n") ==
        "run.yaml:1:1: optimizer.lr: dotted keys are for --set; in a file, write a map within a map");
  CHECK(folder.error("optimizer: {[1]: 1}\n") == "run.yaml:1:13: optimizer: a key must be a name");
  CHECK(folder.error("base: &b {lr: 1}\noptimizer:\n  <<: *b\n") ==
        "2 problems in the configuration:\n"
        "  run.yaml:1:1: base: unknown key, did you mean 'name'?\n"
        "  run.yaml:3:3: optimizer: merge keys (<<) are not supported, use extends");
}

TEST_CASE("the top level must be a map") {
  const Folder folder;
  CHECK(folder.error("- 1\n") == "run.yaml:1:1: a configuration is a map of keys, not a list");
  CHECK(folder.error("hello\n") == "run.yaml:1:1: a configuration is a map of keys, not a single value");
}

}  // namespace settrain::config::test
