// How layers change a section's variant.

#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

TEST_CASE("another variant drops what was meant for the former") {
  const Folder folder;
  const std::string text = "loss: {name: noised_topk, k: 3, epsilon: 0.5}\n";
  CHECK(folder.load(text).get<int64_t>("loss.k") == 3);
  const Config changed = folder.load(text, {"loss.name=noised_topk_imbalanced"});
  CHECK(changed.get<int64_t>("loss.k") == 5);
  CHECK(changed.get<double>("loss.epsilon") == 1);
  CHECK_FALSE(folder.load(text, {"loss.name=cross_entropy"}).has("loss.k"));
}

TEST_CASE("the same variant, said again, drops nothing") {
  const Folder folder;
  const Config config = folder.load("loss: {name: noised_topk, k: 3}\n", {"loss.name=noised_topk", "loss.epsilon=2"});
  CHECK(config.get<int64_t>("loss.k") == 3);
  CHECK(config.get<double>("loss.epsilon") == 2);
}

TEST_CASE("keys common to all variants stay") {
  const Folder folder;
  const Config config = folder.load("data: {name: cifar100, val_size: 1, batch_size: 7, label_noise: {seed: 9}}\n",
                                    {"data.name=synthetic"});
  CHECK(config.get<int64_t>("data.batch_size") == 7);
  CHECK(config.get<int64_t>("data.label_noise.seed") == 9);
  CHECK_FALSE(config.has("data.val_size"));
}

TEST_CASE("a section within a section has variants of its own") {
  const Folder folder;
  const Config config = folder.load("data: {label_noise: {kind: superclass, rate: 0.5}}\n", {"data.name=cifar100"});
  CHECK(config.get<double>("data.label_noise.rate") == 0.5);
  CHECK(config.get<int64_t>("data.val_size") == 5000);
}

TEST_CASE("a file may configure the variant that its base chose") {
  const Folder folder;
  folder.write("base.yaml", "loss: {name: noised_topk}\n");
  CHECK(folder.load("extends: base.yaml\nloss: {k: 2}\n").get<int64_t>("loss.k") == 2);
}

TEST_CASE("a base is judged by the variant it has itself") {
  const Folder folder;
  folder.write("base.yaml", "loss: {k: 2}\n");
  CHECK(folder.error("extends: base.yaml\nloss: {name: noised_topk}\n") ==
        "base.yaml:1:11: loss.k: not a key of loss cross_entropy (it belongs to noised_topk, noised_topk_imbalanced)");
}

TEST_CASE("a variant may come from the environment, not from another key") {
  const Folder folder;
  const Config config = folder.load("loss: {name: \"${env:SETTRAIN_NO_SUCH:-noised_topk}\", k: 2}\n");
  CHECK(config.get<std::string>("loss.name") == "noised_topk");
  CHECK(config.get<int64_t>("loss.k") == 2);
  CHECK(folder.error("loss: {name: \"${name}\"}\n") ==
        "run.yaml:1:14: loss.name: cannot refer to other keys, since it chooses which keys there are");
}

}  // namespace settrain::config::test
