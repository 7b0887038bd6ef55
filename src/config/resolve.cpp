#include "src/config/resolve.h"

#include <algorithm>
#include <map>
#include <optional>

#include "src/config/describe.h"
#include "src/config/format.h"
#include "src/config/interpolate.h"
#include "src/config/range.h"
#include "src/config/read_value.h"
#include "src/config/text.h"

namespace settrain::config {
namespace {

constexpr int kDefaults = 1 << 30;  // Origin::source: last in reports

YamlNode text_node(const std::string& text, const Origin& origin) {
  return {YamlNode::Kind::kScalar, origin, text, true, {}, {}};
}

class Resolver {
 public:
  Resolver(const Declarations& declarations, const Stacked& stacked, const std::string& file, Problems& problems)
      : declarations_(declarations), stacked_(stacked), file_(file), problems_(problems) {
    for (const Declaration& declaration : declarations.all()) {
      if (Declarations::is_active(declaration, stacked.choices)) active_[declaration.path] = &declaration;
    }
  }

  std::vector<Entry> resolve_all() {
    std::vector<Entry> entries;
    for (const Declaration& declaration : declarations_.all()) {
      if (!Declarations::is_active(declaration, stacked_.choices)) continue;
      const std::optional<Value>& value = resolve(declaration);
      if (value) entries.push_back({declaration.path, declaration.key, *value, origin_of(declaration.path)});
    }
    return entries;
  }

 private:
  // nullopt where the value is wrong, which was reported then.
  const std::optional<Value>& resolve(const Declaration& declaration) {
    const auto known = values_.find(declaration.path);
    if (known != values_.end()) return known->second;
    being_resolved_.push_back(declaration.path);
    const auto leaf = stacked_.leaves.find(declaration.path);
    std::optional<Value> value =
        leaf == stacked_.leaves.end() ? resolve_default(declaration) : read(declaration, leaf->second.value);
    being_resolved_.pop_back();
    return values_.emplace(declaration.path, std::move(value)).first->second;
  }

  std::optional<Value> resolve_default(const Declaration& declaration) {
    const auto& [path, key, section, variant] = declaration;
    const Origin origin = origin_of(path);
    if (!is_optional(key)) {
      problems_.add(origin,
                    path + ": must be given, in the file or by --set " + path + "=VALUE (" + type_text(key) + ")");
      return std::nullopt;
    }
    // Texts may hold ${...}.
    if (const auto* text = std::get_if<std::string>(&key.default_value))
      return read(declaration, text_node(*text, origin));
    if (const auto* texts = std::get_if<Texts>(&key.default_value)) {
      YamlNode list{YamlNode::Kind::kList, origin, {}, false, {}, {}};
      for (const std::string& text : *texts) list.values.push_back(text_node(text, origin));
      return read(declaration, list);
    }
    return key.default_value;
  }

  std::optional<Value> read(const Declaration& declaration, const YamlNode& node) {
    const Lookup lookup = [this](const std::string& path) { return look_up(path); };
    return read_value(declaration.path, declaration.key, node, lookup, problems_);
  }

  std::string look_up(const std::string& path) {
    if (path == "file") return file_;
    const auto found = active_.find(path);
    if (declarations_.is_map(path))
      throw InvalidValue("refers to " + in_quotes(path) + ", which is a section, not a key");
    if (found == active_.end()) {
      throw InvalidValue("refers to " + in_quotes(path) + ", which is no key" +
                         declarations_.suggestion(path, stacked_.choices));
    }
    refuse_cycle(path);
    const std::optional<Value>& value = resolve(*found->second);
    if (!value) throw BrokenReference();
    return reference_text(found->second->key, *value);
  }

  void refuse_cycle(const std::string& path) const {
    const auto begin = std::find(being_resolved_.begin(), being_resolved_.end(), path);
    if (begin == being_resolved_.end()) return;
    std::vector<std::string> cycle(begin, being_resolved_.end());
    cycle.push_back(path);
    throw InvalidValue("refers to itself: " + join(cycle, " -> "));
  }

  Origin origin_of(const std::string& path) const {
    const auto leaf = stacked_.leaves.find(path);
    return leaf == stacked_.leaves.end() ? Origin{"default", kDefaults} : leaf->second.value.origin;
  }

  const Declarations& declarations_;
  const Stacked& stacked_;
  const std::string& file_;
  Problems& problems_;
  std::map<std::string, const Declaration*> active_;
  std::map<std::string, std::optional<Value>> values_;
  std::vector<std::string> being_resolved_;
};

}  // namespace

std::vector<Entry> resolve(const Declarations& declarations, const Stacked& stacked, const std::string& file,
                           Problems& problems) {
  return Resolver(declarations, stacked, file, problems).resolve_all();
}

}  // namespace settrain::config
