#include "src/config/document.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

using nlohmann::json;

TEST_CASE("the key list has an aligned line a key") {
  std::istringstream lines(list_keys(sample_schema()));
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  REQUIRE(all.size() == 25);
  const size_t type = all[0].find("type"), meaning = all[0].find("meaning");
  for (const std::string& line : all) {
    CHECK(line[type - 1] == ' ');
    CHECK(line[type] != ' ');
    CHECK(line[meaning - 1] == ' ');
    CHECK(line[meaning] != ' ');
  }
  const std::string text = list_keys(sample_schema());
  CHECK_THAT(text, Catch::Contains("Learning rate.\n"));
  CHECK_THAT(text, Catch::Contains("Share of labels. [uniform, superclass]\n"));
  CHECK_THAT(text, Catch::Contains("The K of top-K. [noised_topk, noised_topk_imbalanced]\n"));
  CHECK_THAT(text, Catch::Contains("Noise's standard deviation. [noised_topk]\n"));
  CHECK_THAT(text, Catch::Contains("integer or auto"));
  CHECK_THAT(text, Catch::Contains("number or {from, to, curve}"));
}

TEST_CASE("on a terminal no line of the key list is wider than it") {
  const std::string text = list_keys(sample_schema(), 40);
  CHECK_THAT(text, Catch::Contains("\noptimizer.lr  number  0.1  > 0  1/step\n    Learning rate.\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 40);
}

TEST_CASE("the reference page has a table a section and one a group of variants") {
  const std::string page = to_markdown(sample_schema());
  CHECK_THAT(page, Catch::StartsWith("# Configuration reference\n"));
  CHECK_THAT(page, Catch::Contains("\n## Top level\n\nThe run.\n\n| Key |"));
  CHECK_THAT(page, Catch::Contains("| `optimizer.lr` | number | `0.1` | > 0 | 1/step | Learning rate. |\n"));
  CHECK_THAT(page, Catch::Contains("| `data.workers` | integer or auto | `auto` | >= 0 |  | Threads \\| auto. |\n"));
  CHECK_THAT(page, Catch::Contains(
                       "| `eval.splits` | list of texts | `[val, test]` | `train`, `val`, `test` |  | Splits. |\n"));
  CHECK_THAT(page, Catch::Contains("| `run.dir` | text | `\"runs/${name}\"` | not empty |  | Run folder. |\n"));
  CHECK_THAT(page, Catch::Contains("### `data.label_noise.kind`: `uniform`, `superclass`\n\n- `uniform`: Any class.\n"
                                   "- `superclass`: A sibling.\n\n| Key |"));
  CHECK_THAT(page, Catch::Contains("### `loss.name`: `cross_entropy`\n\nCross-entropy.\n\nNo keys of its own.\n"));
}

TEST_CASE("a required key says so") {
  Schema schema;
  schema.sections.push_back({"data", "", {free_key("root", std::string(), "Folder.").not_empty()}, "", "", {}});
  CHECK_THAT(to_markdown(schema), Catch::Contains("| `data.root` | text | required | not empty |  | Folder. |"));
  CHECK_FALSE(json::parse(to_json_schema(schema))["properties"]["data"]["properties"]["root"].contains("default"));
}

TEST_CASE("the JSON Schema has every type, range and default") {
  const json schema = json::parse(to_json_schema(sample_schema()));
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["additionalProperties"] == false);
  const json reference = {{"type", "string"}, {"pattern", "\\$\\{"}};
  const json& optimizer = schema["properties"]["optimizer"];
  CHECK(optimizer["additionalProperties"] == false);
  const json lr = {{"anyOf", json::array({{{"type", "number"}, {"exclusiveMinimum", 0}}, reference})},
                   {"default", 0.1},
                   {"description", "Learning rate. [1/step]"}};
  CHECK(optimizer["properties"]["lr"] == lr);
  CHECK(optimizer["properties"]["nesterov"]["anyOf"][0] == json({{"type", "boolean"}}));
  const json& data = schema["properties"]["data"]["properties"];
  CHECK(data["workers"]["anyOf"] ==
        json::array({{{"type", "integer"}, {"minimum", 0}}, reference, {{"const", "auto"}}}));
  CHECK(data["workers"]["default"] == "auto");
  const json& eval = schema["properties"]["eval"]["properties"];
  CHECK(eval["top_k"]["type"] == "array");
  CHECK(eval["top_k"]["minItems"] == 1);
  CHECK(eval["top_k"]["items"]["anyOf"][0] == json({{"type", "integer"}, {"minimum", 1}}));
  CHECK(eval["splits"]["items"]["anyOf"][0]["enum"] == json({"train", "val", "test"}));
  CHECK(schema["properties"]["name"]["minLength"] == 1);
  CHECK(schema["properties"]["extends"]["type"] == "string");
}

TEST_CASE("the JSON Schema ties keys to variants") {
  const json schema = json::parse(to_json_schema(sample_schema()));
  const json& loss = schema["properties"]["loss"];
  CHECK(loss["properties"]["name"]["default"] == "cross_entropy");
  CHECK(loss["properties"]["name"]["anyOf"][0]["oneOf"][1] ==
        json({{"const", "noised_topk"}, {"description", "Balanced."}}));
  CHECK(loss["properties"]["epsilon"]["anyOf"].size() == 2);
  REQUIRE(loss["allOf"].size() == 3);
  CHECK(loss["allOf"][0]["if"]["properties"]["name"]["const"] == "cross_entropy");
  CHECK(loss["allOf"][0]["then"]["propertyNames"]["enum"] == json({"name"}));
  CHECK(loss["allOf"][1]["then"]["propertyNames"]["enum"] == json({"epsilon", "k", "name"}));
  CHECK(loss["allOf"][2]["then"]["properties"]["epsilon"]["anyOf"][0]["maximum"] == 10);
  CHECK(loss["properties"]["noise"]["properties"]["kind"]["default"] == "normal");
  const json& data = schema["properties"]["data"];
  CHECK(data["allOf"][0]["then"]["propertyNames"]["enum"] ==
        json({"batch_size", "label_noise", "name", "root", "workers"}));
  CHECK(data["properties"]["label_noise"]["allOf"].size() == 3);
}

TEST_CASE("words that YAML reads as booleans are accepted as such") {
  Schema schema;
  schema.sections.push_back(
      {"", "", {free_key("d", std::string("auto")).one_of({"auto", "true", "false"})}, "", "", {}});
  const json choices = json::parse(to_json_schema(schema))["properties"]["d"]["anyOf"][0]["enum"];
  CHECK(choices == json({"auto", "true", "false", true, false}));
}

}  // namespace settrain::config::test
