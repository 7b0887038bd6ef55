#include "src/config/interpolate.h"

#include <stdlib.h>

#include "src/config/load.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {
namespace {

std::string expanded(const std::string& text) {
  return expand(text, [](const std::string& name) { return "<" + name + ">"; }).text;
}

}  // namespace

TEST_CASE("references are replaced within a text") {
  setenv("SETTRAIN_SET", "value", 1);
  setenv("SETTRAIN_EMPTY", "", 1);
  unsetenv("SETTRAIN_UNSET");
  CHECK(expanded("") == "");
  CHECK(expanded("a ${b.c} d ${e}") == "a <b.c> d <e>");
  CHECK(expanded("${env:SETTRAIN_SET}/x") == "value/x");
  CHECK(expanded("${env:SETTRAIN_SET:-other}") == "value");
  CHECK(expanded("[${env:SETTRAIN_EMPTY}]") == "[]");
  CHECK(expanded("${env:SETTRAIN_EMPTY:-other}") == "other");
  CHECK(expanded("${env:SETTRAIN_UNSET:-}") == "");
  CHECK(expanded("${env:SETTRAIN_UNSET:-${env:SETTRAIN_EMPTY:-${x}/y}}z") == "<x>/yz");
}

TEST_CASE("dollars are text, doubled before a brace too") {
  CHECK(expanded("$x $ {} $$") == "$x $ {} $$");
  CHECK(expanded("$${x}") == "${x}");
  CHECK(expanded("$$${x}") == "$${x}");
  CHECK(expanded("${env:SETTRAIN_UNSET:-$${}") == "${");
  CHECK_FALSE(expand("$${x}", [](const std::string& name) { return name; }).replaced);
  for (const char* text : {"${", "$${a}", "$$${", "a$", "${a${b}}", "$"})
    CHECK(expanded(escape_references(text)) == text);
}

TEST_CASE("replacements are not expanded again") {
  setenv("SETTRAIN_TRICK", "${seed} $${", 1);
  CHECK(expanded("${env:SETTRAIN_TRICK}") == "${seed} $${");
}

TEST_CASE("broken references say what is missing") {
  unsetenv("SETTRAIN_UNSET");
  CHECK_THROWS_WITH(expanded("${env:SETTRAIN_UNSET}"), "the environment variable 'SETTRAIN_UNSET' is not set");
  CHECK_THROWS_WITH(expanded("a${b"), "'${' without '}' (a literal '${' is written '$${')");
  setenv("SETTRAIN_LATIN", "caf\xE9", 1);
  CHECK_THROWS_WITH(expanded("${env:SETTRAIN_LATIN}"), "the environment variable 'SETTRAIN_LATIN' is not UTF-8 text");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "${env:SETTRAIN_UNSET:-";
  CHECK_THROWS_WITH(expanded(deep + std::string(1000, '}')), "${...} are nested too deeply");
}

TEST_CASE("any key may refer to others") {
  const Folder folder;
  const Config config = folder.load(
      "seed: 8\nselect: [\"${name}\", b]\noptimizer: {lr: \"${data.batch_size}\", momentum: 0.5, nesterov: "
      "\"${env:SETTRAIN_NO:-false}\"}\n"
      "eval: {top_k: [\"${seed}\", 1]}\nname: "
      "${file}-${optimizer.lr}-${data.workers}-${eval.top_k}-${optimizer.nesterov}\n");
  CHECK(config.get<double>("optimizer.lr") == 32);
  CHECK(config.get<bool>("optimizer.nesterov") == false);
  CHECK(config.get<Integers>("eval.top_k") == Integers{8, 1});
  CHECK(config.get<std::string>("name") == "run-32.0-auto-[8, 1]-false");
  CHECK(config.get<Texts>("select").front() == config.get<std::string>("name"));
}

TEST_CASE("a reference is typed as what it becomes") {
  const Folder folder;
  CHECK(folder.error("seed: ${optimizer.lr}\n") == "run.yaml:1:7: seed: '0.1' is not an integer");
  CHECK(folder.error("optimizer: {lr: \"-${data.batch_size}\"}\n") ==
        "run.yaml:1:17: optimizer.lr: -32 is out of range, must be > 0 (1/step)");
}

TEST_CASE("a reference to no key gets the nearest name") {
  const Folder folder;
  CHECK(folder.error("name: ${sead}\n") ==
        "run.yaml:1:7: name: refers to 'sead', which is no key, did you mean 'seed'?");
  CHECK(folder.error("name: ${loss.k}\n") == "run.yaml:1:7: name: refers to 'loss.k', which is no key");
  CHECK(folder.error("name: ${optimizer}\n") ==
        "run.yaml:1:7: name: refers to 'optimizer', which is a section, not a key");
}

TEST_CASE("a cycle of references is one problem, printed whole") {
  const Folder folder;
  CHECK(folder.error("name: ${name}\n") == "run.yaml:1:7: name: refers to itself: name -> name");
  CHECK(folder.error("name: ${run.dir}\ndata: {root: \"${name}\"}\n") ==
        "default: run.dir: refers to itself: name -> run.dir -> name");
}

TEST_CASE("a reference to a broken key adds no second problem") {
  const Folder folder;
  CHECK(folder.error("seed: many\nname: ${seed}\n") == "run.yaml:1:7: seed: 'many' is not an integer");
}

TEST_CASE("references that grow exponentially are refused") {
  Schema schema;
  schema.sections.push_back({"", "", {}, "", "", {}});
  for (int i = 0; i < 40; ++i) {
    const std::string next = "${k" + std::to_string(i + 1) + "}";
    schema.sections[0].keys.push_back(free_key("k" + std::to_string(i), next + next));
  }
  schema.sections[0].keys.push_back(free_key("k40", std::string("x")));
  CHECK_THROWS_WITH(config::load(schema, "", {}),
                    Catch::EndsWith("gets longer than 64 KiB when its ${...} are filled in"));
}

}  // namespace settrain::config::test
