#include "src/config/layer.h"

#include <map>
#include <utility>

#include "src/config/text.h"

namespace settrain::config {
namespace {

using Kind = YamlNode::Kind;

class Flattener {
 public:
  Flattener(const Declarations& declarations, Problems& problems) : declarations_(declarations), problems_(problems) {}

  void walk(const YamlNode& map, const std::string& path) {
    for (size_t i = 0; i < map.keys.size(); ++i) visit(map.keys[i], map.values[i], path);
  }

  Layer take() { return std::move(layer_); }

 private:
  void visit(const YamlNode& key, const YamlNode& value, const std::string& parent) {
    if (!is_plain_name(key, parent)) return;
    const std::string path = join_path(parent, key.text);
    const auto [first, is_new] = places_.emplace(path, key.origin);
    if (!is_new) problems_.add(key.origin, path, "given twice, first at " + first->second.text);
    if (declarations_.is_key(path)) {
      if (is_new) add_leaf(path, key.origin, value, layer_, problems_);
    } else if (declarations_.is_map(path)) {
      visit_section(key, value, path);
    } else if (is_new && path != "extends") {
      layer_.unknown.push_back({path, key.origin});
    }
  }

  bool is_plain_name(const YamlNode& key, const std::string& parent) {
    if (!key.is(Kind::kScalar) || key.text.empty()) {
      problems_.add(key.origin, parent, "a key must be a name");
      return false;
    }
    if (key.text == "<<" && !key.quoted) {
      problems_.add(key.origin, parent, "merge keys (<<) are not supported, use extends");
      return false;
    }
    if (key.text.find('.') != std::string::npos) {
      problems_.add(key.origin, join_path(parent, on_one_line(key.text)),
                    "dotted keys are for --set; in a file, write a map within a map");
      return false;
    }
    return true;
  }

  void visit_section(const YamlNode& key, const YamlNode& value, const std::string& path) {
    if (value.is(Kind::kMap)) return walk(value, path);
    if (value.is(Kind::kNull)) {
      return problems_.add(key.origin, path, "is an empty section, give it keys or remove it");
    }
    std::string message = "is a section, it must be a map of keys";
    for (const Section& section : declarations_.schema().sections) {
      const bool meant_variant = section.name == path && value.is(Kind::kScalar) && find_variant(section, value.text);
      if (meant_variant) message += ", write {" + section.selector + ": " + value.text + "}";
    }
    problems_.add(value.origin, path, message);
  }

  const Declarations& declarations_;
  Problems& problems_;
  Layer layer_;
  std::map<std::string, Origin> places_;
};

}  // namespace

void add_leaf(const std::string& path, const Origin& key_origin, const YamlNode& value, Layer& layer,
              Problems& problems) {
  switch (value.kind) {
    case Kind::kNull:
      return problems.add(key_origin, path, "has no value");
    case Kind::kMap:
      return problems.add(value.origin, path, "is a map, but the key takes a value");
    case Kind::kList:
      for (const YamlNode& element : value.values) {
        if (!element.is(Kind::kScalar)) {
          return problems.add(element.origin, path, "elements of a list must be single values");
        }
      }
      break;
    case Kind::kScalar:
      break;
  }
  layer.leaves.push_back({path, value});
}

Layer flatten(const YamlNode& root, const Declarations& declarations, Problems& problems) {
  Flattener flattener(declarations, problems);
  flattener.walk(root, "");
  return flattener.take();
}

}  // namespace settrain::config
