// The JSON Schema as another program reads it, against what load() says of the same files.
#include <cstdlib>
#include <fstream>

#include "src/config/document.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain::config::test {
namespace {

int run(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str());
}

}  // namespace

TEST_CASE("a validator of JSON Schemas agrees with the loader") {
  const std::string set = settrain::test::environment("SETTRAIN_PYTHON");
  const std::string python = set.empty() ? "python3" : set;
  SKIP_UNLESS(run(python + " -c 'import jsonschema, yaml'") == 0, "no Python with jsonschema and yaml");
  const Folder folder;
  const std::string schema = folder.write("schema.json", to_json_schema(sample_schema())).string();
  // Validates every file, and writes 1 or 0 for each.
  const std::string script =
      folder
          .write("check.py",
                 "import json, jsonschema, pathlib, sys, yaml\n"
                 "schema = json.load(open(sys.argv[1]))\n"
                 "jsonschema.Draft202012Validator.check_schema(schema)\n"
                 "validator = jsonschema.Draft202012Validator(schema)\n"
                 "valid = [validator.is_valid(yaml.safe_load(open(file))) for file in sys.argv[3:]]\n"
                 "pathlib.Path(sys.argv[2]).write_text(''.join('1' if v else '0' for v in valid))\n")
          .string();
  std::vector<std::string> files = {
      "seed: 1\n",
      "seed: -1\n",
      "sead: 1\n",
      "seed: one\n",
      "seed: ${data.batch_size}\n",
      "optimizer: {lr: 0.1, nesterov: false}\n",
      "optimizer: {lr: 0}\n",
      "optimizer: {lr: 0.1, moment: 1}\n",
      "data: {workers: auto}\n",
      "data: {workers: -1}\n",
      "data: {label_noise: {kind: uniform, rate: 0.5}}\n",
      "data: {label_noise: {kind: none, rate: 0.5}}\n",
      "loss: {name: noised_topk, epsilon: 20.0}\n",
      "loss: {name: noised_topk_imbalanced, epsilon: 20.0}\n",
      "loss: {name: noised_topk, max_margin: 0.1}\n",
      "loss: {name: noised_topk_imbalanced, noise: {kind: none}}\n",
      "loss: {name: noised_topk_imbalanced, noise: {kind: some}}\n",
      "loss: {name: noised_topk_imbalanced, max_margin: {from: 1, to: 0.5, curve: cosine}}\n",
      "loss: {name: noised_topk_imbalanced, max_margin: {from: 1}}\n",
      "loss: {name: noised_topk_imbalanced, max_margin: {from: 1, to: -1}}\n",
      "loss: {name: noised_topk_imbalanced, max_margin: {from: 1, to: 2, curve: sine}}\n",
      "loss: {name: noised_topk_imbalanced, max_margin: {from: 1, till: 2}}\n",
      "loss: {name: noised_topk, epsilon: {from: 1, to: 2}}\n",
      "loss: {name: nosed_topk}\n",
      "eval: {top_k: [1, 5], splits: [val]}\n",
      "eval: {top_k: 5}\n",
      "eval: {top_k: []}\n",
      "eval: {top_k: [0]}\n",
      "eval: {splits: [vla]}\n",
  };
  files.push_back(folder.load("loss: {name: noised_topk_imbalanced}\n").to_yaml());
  std::string names;
  for (size_t i = 0; i < files.size(); ++i) names += " " + folder.write(std::to_string(i) + ".yaml", files[i]).string();
  REQUIRE(run(python + " " + script + " " + schema + " " + folder.path("verdicts").string() + names) == 0);
  std::string verdicts;
  std::ifstream(folder.path("verdicts")) >> verdicts;
  REQUIRE(verdicts.size() == files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    INFO(files[i]);
    CHECK((verdicts[i] == '1') == (folder.error(files[i]) == "no error"));
  }
}

}  // namespace settrain::config::test
