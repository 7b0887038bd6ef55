// YAML that is wrong, hostile, or more than a configuration needs.
#include "src/config/yaml.h"

#include <chrono>
#include <fstream>
#include <random>

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_CASE("a syntax error has its place") {
  const Folder folder;
  CHECK(folder.error("seed: 1\noptimizer: {lr: 1\n") == "run.yaml:3:1: YAML: end of map flow not found");
  CHECK(folder.error("optimizer:\n  lr: 1\n momentum: 1\n") == "run.yaml:3:2: YAML: end of map not found");
  CHECK(folder.error("a: b: c\n") == "run.yaml:1:5: YAML: illegal map value");
  CHECK(folder.error("seed: 1\nname: 'abc\n") == "run.yaml:3:1: YAML: illegal EOF in scalar (a quote is never closed)");
  CHECK(folder.error("name: \"abc") == "run.yaml:2:1: YAML: illegal EOF in scalar (a quote is never closed)");
  CHECK(folder.error("", {"name='abc"}) == "--set name='abc: YAML: illegal EOF in scalar (a quote is never closed)");
  CHECK_THAT(folder.error("name: *nobody\n"),
             Catch::StartsWith("run.yaml:1:7: YAML: the referenced anchor is not defined"));  // yaml-cpp 0.8 names it
}

TEST_CASE("tabs and unquoted references get advice") {
  const Folder folder;
  CHECK_THAT(folder.error("optimizer:\n\tlr: 1\n"), Catch::EndsWith("(line 2 is indented with a tab, use spaces)"));
  CHECK_THAT(folder.error("run: {dir: runs/${name}}\n"),
             Catch::EndsWith("(within { } and [ ], put text with ${...} in quotes)"));
}

TEST_CASE("YAML that no configuration needs is refused") {
  const Folder folder;
  CHECK(folder.error("seed: 1\n---\nseed: 2\n") == "run.yaml:2:1: YAML: a second YAML document; a file holds one");
  CHECK(folder.error("---\n---\nseed: 2\n") == "run.yaml:2:1: YAML: a second YAML document; a file holds one");
  CHECK(folder.error("name: !!str 5\n") ==
        "run.yaml:1:7: YAML: the tag 'tag:yaml.org,2002:str' is not supported, remove it");
  CHECK(folder.error("optimizer: !sgd {lr: 1}\n") == "run.yaml:1:12: YAML: the tag '!sgd' is not supported, remove it");
  CHECK(folder.error("name: \"a\\_b\"\n") ==
        "run.yaml:1:7: YAML: for the escapes \\_ and \\N write \\u00a0 and \\u0085");
  CHECK(folder.load("name: \"a\\u00a0b\"\n").get<std::string>("name") ==
        "a\xC2\xA0"
        "b");
  CHECK(folder.error("select: &a [*a]\n") == "run.yaml:1:13: YAML: an alias within its own anchor");
}

TEST_CASE("anchors and aliases work") {
  const Folder folder;
  const Config config = folder.load("eval:\n  top_k: &k [2, 4]\n  average_k: *k\n");
  CHECK(config.get<Integers>("eval.top_k") == Integers{2, 4});
  CHECK(config.get<Reals>("eval.average_k") == Reals{2, 4});
}

TEST_CASE("a byte order mark is skipped, an accent is text") {
  const Folder folder;
  CHECK(folder.load("\xEF\xBB\xBFname: caf\xC3\xA9\n").get<std::string>("name") == "caf\xC3\xA9");
}

TEST_CASE("other encodings and binary junk are refused with a place") {
  const Folder folder;
  CHECK(folder.error("seed: 1\nname: caf\xE9\n") == "run.yaml:2:10: not UTF-8 text");
  CHECK(folder.error("\xFF\xFEs\0e\0") == "run.yaml:1:1: not UTF-8 text");
  CHECK(folder.error("name: \xED\xA0\x80\n") == "run.yaml:1:7: not UTF-8 text");
  CHECK(folder.error("name: \xC0\xAF\n") == "run.yaml:1:7: not UTF-8 text");
  CHECK(folder.error("name: \xF4\x90\x80\x80\n") == "run.yaml:1:7: not UTF-8 text");
  CHECK(folder.error("seed: 1\x04\nseed: 2\n") == "run.yaml:1:8: the control character 0x04 is no YAML");
  CHECK(folder.error(std::string("seed: 1\0", 8)) == "run.yaml:1:8: the control character 0x00 is no YAML");
}

TEST_CASE("an alias bomb is refused quickly") {
  const Folder folder;
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(alias + ", ", 9) + alias + "]\n";
  }
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(folder.error(bomb), Catch::Contains("YAML: more than 10000 values"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
}

TEST_CASE("too many, too deep, too large") {
  const Folder folder;
  CHECK_THAT(folder.error("eval: {top_k: [" + repeated("1,", 10'000) + "]}\n"),
             Catch::Contains("more than 10000 values"));
  CHECK_THAT(folder.error("select: " + repeated("[", 60) + repeated("]", 60)),
             Catch::Contains("nested deeper than 50 levels"));
  const std::string anchored = "seed: &a " + repeated("[", 30) + repeated("]", 30) + "\n";
  CHECK_THAT(folder.error(anchored + "select: " + repeated("[", 21) + "*a" + repeated("]", 21)),
             Catch::StartsWith("run.yaml:2:30: YAML: nested deeper than 50 levels"));
  CHECK_THAT(folder.error(anchored + "select: " + repeated("[", 19) + "*a" + repeated("]", 19)),
             !Catch::Contains("nested deeper"));
  CHECK_THAT(folder.error(repeated("[", 100'000)), Catch::StartsWith("run.yaml:1:"));
  CHECK_THAT(folder.error(repeated("{a: ", 100'000)), Catch::StartsWith("run.yaml:1:"));
  CHECK_THAT(folder.error(repeated("- ", 100'000)), Catch::StartsWith("run.yaml:1:"));
  CHECK(folder.error(repeated("# comment\n", 110'000)) == "run.yaml: is larger than 1 MiB, which is no configuration");
}

TEST_CASE("a file full of unknown keys is cut short") {
  const Folder folder;
  std::string junk;
  for (int i = 0; i < 3000; ++i) junk += "some_key_" + std::to_string(i) + ": 1\n";
  const std::string error = folder.error(junk);
  CHECK_THAT(error, Catch::StartsWith("3000 problems in the configuration:\n  run.yaml:1:1: some_key_0: unknown key"));
  CHECK_THAT(error, Catch::EndsWith("\n  and 2900 more"));
}

TEST_CASE("a very long key is refused quickly") {
  const Folder folder;
  CHECK_THAT(folder.error("? " + std::string(900'000, 'k') + "\n: 1\n"), Catch::Contains("unknown key"));
}

TEST_CASE("damaged files give a ConfigError or load, never anything else") {
  const Folder folder;
  const std::string good =
      "extends: base.yaml\nname: &n \"a\\tb\"\nselect: [*n, 'x', >-\n  y]\noptimizer:\n  lr: 1e-3 # c\n  nesterov: "
      "true\n"
      "loss: {name: noised_topk, k: ${seed}, epsilon: 0.1}\nrun:\n  dir: |\n    ${env:HOME:-${name}}/x\n";
  folder.write("base.yaml", "seed: 1\n");
  std::mt19937 random(4);
  const std::string pieces = "{}[]:,&*!|>'\"%@`#-? \n\t\\$~<\x01\x80\xC3";
  int refused = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::string text = good;
    for (unsigned change = 0, changes = 1 + random() % 4; change < changes; ++change) {
      const size_t at = random() % text.size();
      const char piece = pieces[random() % pieces.size()];
      switch (random() % 3) {
        case 0:
          text[at] = piece;
          break;
        case 1:
          text.insert(at, 1, piece);
          break;
        default:
          text.erase(at, 1 + random() % 5);
          break;
      }
    }
    try {
      folder.load(text);
    } catch (const ConfigError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).size() > 10);
    }
  }
  CHECK(refused > 300);
}

}  // namespace settrain::config::test
