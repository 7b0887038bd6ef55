#include "src/config/load.h"

#include <cmath>

#include "src/core/error.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

TEST_CASE("an empty file is a configuration of defaults") {
  const Folder folder;
  const std::string text = GENERATE("", "\n", "# nothing but a comment\n", "---\n", "{}\n");
  const Config config = folder.load(text);
  CHECK(config.get<double>("optimizer.lr") == 0.1);
  CHECK(config.get<std::string>("name") == "run");
  CHECK(config.get<std::string>("run.dir") == "runs/run");
  CHECK(config.get<std::string>("loss.name") == "cross_entropy");
  CHECK(config.get<int64_t>("data.workers") == -1);
  CHECK(config.at("optimizer.lr").origin.text == "default");
}

TEST_CASE("without a file the name is settrain") {
  const Config config = load(sample_schema(), "", {"seed=7"});
  CHECK(config.get<std::string>("run.dir") == "runs/settrain");
  CHECK(config.get<int64_t>("seed") == 7);
}

TEST_CASE("values of every type are read") {
  const Folder folder;
  const Config config = folder.load(
      "seed: 9223372036854775807\n"
      "select: [val/top5, \"quoted, text\"]\n"
      "data: {name: cifar100, workers: auto, batch_size: +8}\n"
      "optimizer:\n"
      "  lr: 2.5e-3\n"
      "  momentum: 0\n"
      "  nesterov: false\n"
      "eval:\n"
      "  top_k:\n"
      "    - 1\n"
      "    - 3\n"
      "  average_k: [1, .5, 5.]\n"
      "  splits: []\n");
  CHECK(config.get<int64_t>("seed") == INT64_MAX);
  CHECK(config.get<Texts>("select") == Texts{"val/top5", "quoted, text"});
  CHECK(config.get<int64_t>("data.workers") == -1);
  CHECK(config.get<int64_t>("data.batch_size") == 8);
  CHECK(config.get<int64_t>("data.val_size") == 5000);
  CHECK(config.get<double>("optimizer.lr") == 0.0025);
  CHECK(config.get<double>("optimizer.momentum") == 0.0);
  CHECK(config.get<bool>("optimizer.nesterov") == false);
  CHECK(config.get<Integers>("eval.top_k") == Integers{1, 3});
  CHECK(config.get<Reals>("eval.average_k") == Reals{1, 0.5, 5});
  CHECK(config.get<Texts>("eval.splits").empty());
}

TEST_CASE("read fills an options struct from its own keys") {
  const Folder folder;
  const Config config =
      folder.load("loss: {name: noised_topk_imbalanced, k: 3, noise: {kind: none}}\noptimizer: {lr: 1}\n");
  const auto optimizer = config.read<OptimizerOptions>("optimizer");
  CHECK(optimizer.lr == 1.0);
  CHECK(optimizer.momentum == 0.9);
  CHECK(optimizer.nesterov);
  const auto loss = config.read<LossOptions>("loss");
  CHECK(loss.k == 3);
  CHECK(loss.max_margin == 0.2);
  CHECK(loss.noise_kind == "none");
}

TEST_CASE("asking for what the schema lacks is a mistake in the program") {
  const Folder folder;
  const Config config = folder.load("");
  CHECK_THROWS_WITH(config.at("optimizer.lrr"), "the configuration has no key 'optimizer.lrr'");
  CHECK_THROWS_AS(config.get<int64_t>("loss.k"), std::logic_error);
  CHECK_THROWS_AS(config.read<OptimizerOptions>("eval"), std::logic_error);
  CHECK(config.has("seed"));
  CHECK_FALSE(config.has("loss.k"));
}

TEST_CASE("entries know where their value came from") {
  const Folder folder;
  const Config config = folder.load("optimizer:\n  lr: 0.5\n", {"seed=3"});
  CHECK(config.at("optimizer.lr").origin.text == folder.path("run.yaml").string() + ":2:7");
  CHECK(config.at("seed").origin.text == "--set seed=3");
}

TEST_CASE("every offender is reported at once, in the order of the places") {
  const Folder folder;
  CHECK(folder.error("loss: {name: noised_topk, epsilon: 0}\n"
                     "optimiser: {lr: 0.1}\n"
                     "data:\n"
                     "  batch_size: many\n",
                     {"eval.topk=[1]"}) ==
        "4 problems in the configuration:\n"
        "  run.yaml:1:36: loss.epsilon: 0 is out of range, must be > 0\n"
        "  run.yaml:2:1: optimiser: unknown key, did you mean 'optimizer'?\n"
        "  run.yaml:4:15: data.batch_size: 'many' is not an integer\n"
        "  --set eval.topk=[1]: eval.topk: unknown key, did you mean 'eval.top_k'?");
}

TEST_CASE("a key without a usable default must be given") {
  Schema schema;
  schema.sections.push_back({"data", "", {free_key("root", std::string(), "Folder.").not_empty()}, "", "", {}});
  CHECK_THROWS_WITH(load(schema, "", {}), "data.root: must be given, in the file or by --set data.root=VALUE (text)");
  CHECK(load(schema, "", {"data.root=/data"}).get<std::string>("data.root") == "/data");
}

TEST_CASE("a schema that is wrong in itself is a mistake in the program") {
  Schema schema;
  SECTION("a key twice") {
    schema.sections.push_back({"", "", {free_key("a", true), free_key("a", true)}, "", "", {}});
  }
  SECTION("a key where a map is") {
    schema.sections.push_back({"", "", {free_key("a", true), free_key("a.b", true)}, "", "", {}});
  }
  SECTION("an unknown default variant") {
    schema.sections.push_back({"loss", "", {}, "name", "b", {{"a", "", {}}}});
  }
  SECTION("a curve of integers") {
    schema.sections.push_back({"", "", {free_key("a", int64_t{1}).by_epoch()}, "", "", {}});
  }
  SECTION("words for a text") {
    schema.sections.push_back({"", "", {free_key("a", std::string("b")).word("auto", 0)}, "", "", {}});
  }
  CHECK_THROWS_AS(load(schema, "", {}), std::logic_error);
}

TEST_CASE("rules run once everything else is right, and all of them are reported") {
  const Folder folder;
  Schema schema = sample_schema();
  schema.rules.push_back([](const Config& config) { config.fail("optimizer.lr", "too bold"); });
  schema.rules.push_back([](const Config&) {});
  schema.rules.push_back([](const Config& config) { config.fail("seed", "unlucky"); });
  const std::string good = folder.write("run.yaml", "seed: 13\noptimizer: {lr: 2}\n").string();
  CHECK_THROWS_WITH(load(schema, good, {}), "2 problems in the configuration:\n  " + good + ":1:7: seed: unlucky\n  " +
                                                good + ":2:17: optimizer.lr: too bold");
  CHECK_THROWS_WITH(load(schema, good, {"seed=x"}), "--set seed=x: seed: 'x' is not an integer");
}

TEST_CASE("rules that a recorded config breaks by itself are not applied to it") {
  const Folder folder;
  Schema schema = sample_schema();
  const std::string recorded = folder.write("config.yaml", "seed: 13\noptimizer: {lr: 2}\n").string();
  schema.rules.push_back([](const Config& config) {  // of a later version
    if (config.get<double>("optimizer.lr") > 1) config.fail("optimizer.lr", "too bold");
    if (config.get<int64_t>("seed") == 5) config.fail("seed", "too low");
  });
  schema.rules.push_back([](const Config& config) {
    if (config.get<int64_t>("seed") == 7) config.fail("seed", "unlucky");
  });
  CHECK_THROWS_AS(load(schema, recorded, {}), ConfigError);
  CHECK(load_recorded(schema, recorded).get<int64_t>("seed") == 13);
  CHECK(load_amended(schema, recorded, {"seed=8"}).get<int64_t>("seed") == 8);
  CHECK_THROWS_WITH(load_amended(schema, recorded, {"seed=7"}), "--set seed=7: seed: unlucky");
  CHECK_THROWS_WITH(load_amended(schema, recorded, {"seed=5", "optimizer.lr=1"}), "--set seed=5: seed: too low");
  CHECK_THROWS_WITH(load_amended(schema, recorded, {"optimizer.lr=3"}), "--set optimizer.lr=3: optimizer.lr: too bold");
  CHECK_THROWS_AS(load_amended(schema, recorded, {"sed=8"}), ConfigError);

  schema.needs.push_back([](const Config& config) {
    if (config.get<int64_t>("seed") == 13) config.fail("seed", "is not there");
  });
  CHECK_NOTHROW(load_recorded(schema, recorded));
  CHECK_NOTHROW(load_amended(schema, recorded, {"seed=8"}));
  CHECK_THROWS_WITH(load_amended(schema, recorded, {}), recorded + ":1:7: seed: is not there");
}

TEST_CASE("a mistake that shows only later fails with the place of the key") {
  const Folder folder;
  const Config config = folder.load("optimizer: {lr: 2}\n");
  const std::string file = folder.path("run.yaml").string();
  CHECK_THROWS_WITH(config.fail("optimizer.lr", "diverged"), file + ":1:17: optimizer.lr: diverged");
  CHECK_THROWS_AS(config.fail("seed", "unlucky"), ConfigError);
  CHECK_THROWS_WITH(config.fail("seed", "unlucky"), "default: seed: unlucky");
}

TEST_CASE("a config with another value is a copy") {
  const Folder folder;
  const Config config = folder.load("seed: 3\n");
  const Config changed = config.with("seed", int64_t{5});
  CHECK(changed.get<int64_t>("seed") == 5);
  CHECK(config.get<int64_t>("seed") == 3);
}

// Layers that change a section's variant.

// A config whose loss has this max_margin, and what is set on top of it.
Config load_margin(const Folder& folder, const std::string& margin, const std::vector<std::string>& overrides = {}) {
  return folder.load("loss: {name: noised_topk_imbalanced, max_margin: " + margin + "}\n", overrides);
}

TEST_CASE("a number that changes by epoch is a map of its ends and its curve") {
  const Folder folder;
  const Config config = load_margin(folder, "{from: 2, to: 0.5}");
  const std::vector<Curve> curves = config.curves("loss");
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].path == "loss.max_margin");
  CHECK(curves[0].from == 2);
  CHECK(curves[0].to == 0.5);
  CHECK(curves[0].shape == "linear");
  CHECK(config.read<LossOptions>("loss").max_margin == 0.5);
  CHECK_FALSE(config.has("loss.max_margin"));
  CHECK(config.at("loss.max_margin.from").origin.text.ends_with("run.yaml:1:57"));
  CHECK(config.with("loss.max_margin.to", 0.75).read<LossOptions>("loss").max_margin == 0.75);
  CHECK(load_margin(folder, "0.3").curves("loss").empty());
  CHECK(folder.load("").curves("loss").empty());
  const Config again = folder.load(config.to_yaml());
  CHECK(again.to_yaml() == config.to_yaml());
  CHECK(again.curves("loss").size() == 1);
}

TEST_CASE("what comes last is a number or a curve, and --set reaches an end of it") {
  const Folder folder;
  const auto margin = [&](const std::string& base, const std::vector<std::string>& overrides) {
    const Config config = load_margin(folder, base, overrides);
    if (config.curves("loss").empty()) return std::to_string(config.get<double>("loss.max_margin"));
    const Curve curve = config.curves("loss")[0];
    return std::to_string(curve.from) + " " + std::to_string(curve.to) + " " + curve.shape;
  };
  const std::string path = "loss.max_margin", curve = "{from: 2, to: 1, curve: cosine}";
  CHECK(margin(curve, {path + ".from=4"}) == "4.000000 1.000000 cosine");
  CHECK(margin(curve, {path + ".to=4", path + ".curve=exponential"}) == "2.000000 4.000000 exponential");
  CHECK(margin(curve, {path + "=4"}) == "4.000000");
  CHECK(margin("3", {path + ".from=4", path + ".to=5"}) == "4.000000 5.000000 linear");
  CHECK(margin("3", {path + "={from: 4, to: 5}"}) == "4.000000 5.000000 linear");
  CHECK(margin(curve, {path + "=4", path + ".from=1", path + ".to=2"}) == "1.000000 2.000000 linear");
  folder.write("base.yaml", "loss: {name: noised_topk_imbalanced, max_margin: " + curve + "}\n");
  CHECK(folder.load("extends: base.yaml\nloss: {max_margin: 3}\n").get<double>("loss.max_margin") == 3);
  CHECK(folder.load("extends: base.yaml\nloss: {max_margin: {to: 3}}\n").curves("loss")[0].from == 2);
  CHECK(folder.load("extends: base.yaml\nloss: {name: noised_topk}\n").curves("loss").empty());
}

TEST_CASE("a wrong curve is told with its place") {
  const Folder folder;
  const auto error = [&](const std::string& margin, const std::vector<std::string>& overrides = {}) {
    return folder.error("loss: {name: noised_topk_imbalanced, max_margin: " + margin + "}\n", overrides);
  };
  using Catch::Contains;
  CHECK_THAT(error("{from: 2}"), Contains("run.yaml:1:") && Contains("loss.max_margin.to"));
  CHECK_THAT(error("{to: 2, curve: cosine}"), Contains("run.yaml:1:") && Contains("loss.max_margin.from"));
  CHECK_THAT(error("{from: 2, to: -1}"), Contains("run.yaml:1:64: loss.max_margin.to") && Contains(">= 0"));
  CHECK_THAT(error("{from: 2, to: 1, curve: sine}"), Contains("loss.max_margin.curve") && Contains("cosine"));
  CHECK_THAT(error("{form: 2, to: 1}"), Contains("loss.max_margin.form") && Contains("loss.max_margin.from"));
  CHECK_THAT(error("{from: 2, to: [1]}"), Contains("loss.max_margin.to"));
  CHECK_THAT(folder.error("name: \"${loss.max_margin.from}\"\nloss: {name: noised_topk_imbalanced}\n"),
             Contains("loss.max_margin.from"));
  CHECK(folder
            .load("name: \"${loss.max_margin.from}\"\nloss: {name: noised_topk_imbalanced, max_margin: {from: 2, "
                  "to: 1}}\n")
            .get<std::string>("name") == "2.0");
  CHECK_THAT(error("{}"), Contains("loss.max_margin"));
  CHECK_THAT(error("1", {"loss.max_margin.from=2"}), Contains("loss.max_margin.to"));
  CHECK_THAT(folder.error("loss: {name: noised_topk, epsilon: {from: 2, to: 1}}\n"),
             Contains("loss.epsilon") && Contains("cannot change by epoch"));
  CHECK_THAT(folder.error("loss: {name: noised_topk, max_margin: {from: 2, to: 1}}\n"),
             Contains("loss.max_margin.from") && Contains("noised_topk_imbalanced"));
}

TEST_CASE("an unknown key below a number says whether the number can change by epoch") {
  const Folder folder;
  const auto error = [&](const std::string& loss, const std::string& setting) {
    return folder.error("loss: {name: " + loss + "}\n", {setting});
  };
  using Catch::Contains;
  CHECK_THAT(error("noised_topk_imbalanced", "loss.max_margin.start=1"), Contains("from, to and curve"));
  CHECK_THAT(error("noised_topk_imbalanced", "loss.max_margin.form=1"), Contains("'loss.max_margin.from'"));
  CHECK_THAT(error("noised_topk_imbalanced", "loss.k.from=1"),
             Contains("loss.k takes one value") && Contains("what can: loss.max_margin"));
  CHECK_THAT(error("noised_topk", "loss.k.to=1"), Contains("cannot change by epoch") && !Contains("max_margin"));
  CHECK_THAT(error("noised_topk", "loss.k.size=1"), Contains("loss.k") && !Contains("epoch"));
}

TEST_CASE("a curve begins with its first value in the first epoch and has the last one in the last") {
  for (const char* shape : {"linear", "cosine", "exponential"}) {
    const Curve curve{"loss.tau", 8, 0.5, shape};
    CHECK(curve.at(0, 5) == 8);
    CHECK(curve.at(4, 5) == 0.5);
    CHECK(curve.at(9, 5) == 0.5);
    CHECK(curve.at(0, 1) == 0.5);
    CHECK(curve.at(0, 0) == 0.5);
    for (int64_t epoch = 1; epoch < 5; ++epoch) CHECK(curve.at(epoch, 5) < curve.at(epoch - 1, 5));
  }
  CHECK(Curve{"", 8, 0.5, "linear"}.at(1, 5) == Approx(8 - 7.5 / 4));
  CHECK(Curve{"", 8, 0.5, "cosine"}.at(1, 5) == Approx(0.5 + 7.5 * (1 + std::sqrt(0.5)) / 2));
  CHECK(Curve{"", 8, 0.5, "exponential"}.at(1, 5) == Approx(4));
}

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
