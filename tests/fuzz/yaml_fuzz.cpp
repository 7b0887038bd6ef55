// Configurations: parse_yaml(), and load() of each input as a file and as an override. What `extends` other files is
// left out, since they lie outside the input.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/config/differences.h"
#include "src/config/key.h"
#include "src/config/load.h"
#include "src/config/yaml.h"
#include "src/core/text.h"
#include "tests/config/sample.h"
#include "tests/support/fuzzing.h"
#include "tests/support/memory_file.h"

using namespace settrain;
using namespace settrain::config;
using config::test::free_key;
using settrain::test::MemoryFile;
using settrain::test::must;
using settrain::test::unless_refused;

namespace {

// A key of every type and with every kind of limit; two variants.
Schema make_schema() {
  const Key k = free_key("k", int64_t{5}).at_least(1).below(100);
  Schema schema;
  schema.sections.push_back({"",
                             "",
                             {free_key("name", std::string("${file}")).not_empty(),
                              free_key("seed", std::string("${data.workers}")), free_key("select", Texts{}).distinct()},
                             "",
                             "",
                             {}});
  schema.sections.push_back({"data",
                             "",
                             {free_key("root", std::string("${env:SETTRAIN_NOWHERE:-data}")),
                              free_key("workers", int64_t{-1}).at_least(0).word("auto", -1), free_key("grey", false),
                              free_key("rates", Reals{0.5}).at_least(0).at_most(1)},
                             "",
                             "",
                             {}});
  schema.sections.push_back(
      {"loss",
       "",
       {},
       "name",
       "topk",
       {{"topk", "", {k, free_key("noise.kind", std::string("normal")).one_of({"normal", "none"})}},
        {"hinge", "", {k, free_key("scale", 1.0).above(0), free_key("steps", Integers{1, 2})}}}});
  return schema;
}

void check_node(const YamlNode& node, int depth, int& nodes) {
  must(++nodes <= 10'000 && depth <= 50, "no tree is larger or deeper than documented");
  must(node.origin.line >= 1 && node.origin.column >= 1, "every node has its place");
  must(node.is(YamlNode::Kind::kMap) ? node.keys.size() == node.values.size() : node.keys.empty(),
       "every key of a map has a value");
  must(node.is(YamlNode::Kind::kScalar) || node.text.empty(), "only scalars have a text");
  must(is_utf8(node.text), "texts are UTF-8");
  for (const auto* children : {&node.keys, &node.values}) {
    for (const YamlNode& child : *children) check_node(child, depth + 1, nodes);
  }
}

bool extends_a_file(const YamlNode& root) {
  return std::any_of(root.keys.begin(), root.keys.end(), [](const YamlNode& key) { return key.text == "extends"; });
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void check_config(const Schema& schema, const Config& config) {
  for (const Entry& entry : config.entries()) {
    must(whole_error(entry.key, entry.value).empty(), "every value is one that its key accepts");
  }
  const std::string yaml = config.to_yaml();
  must(is_utf8(yaml), "the resolved YAML is UTF-8");
  const MemoryFile file(bytes_of(yaml));
  const auto again = unless_refused([&] { return load(schema, file.path(), {}); });
  must(again.has_value(), "the resolved YAML can be loaded");
  must(again->to_yaml() == yaml, "and gives the same configuration");
  must(differences(yaml, yaml).empty(), "a configuration does not differ from itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Schema schema = make_schema();
  const std::string text(reinterpret_cast<const char*>(data), size);

  Problems problems;
  const std::optional<YamlNode> root = parse_yaml(text, {"input", 0, true}, problems);
  must(root.has_value() == problems.empty(), "there is a tree or a problem");
  int nodes = 0;
  if (root) check_node(*root, 0, nodes);
  if (root && !extends_a_file(*root)) {
    const MemoryFile file({data, size});
    const auto config = unless_refused([&] { return load(schema, file.path(), {}); });
    if (config) check_config(schema, *config);
  }
  const auto config = unless_refused([&] { return load(schema, "", {text}); });
  if (config) check_config(schema, *config);
  return 0;
}
