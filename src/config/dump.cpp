// Config to YAML.
#include <memory>

#include "src/config/config.h"
#include "src/config/format.h"

namespace settrain::config {
namespace {

// A map of the file. Keys keep the order in which they were first added.
class Map {
 public:
  void add(std::string_view path, const Entry& entry) {
    const size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    if (dot == std::string_view::npos) {
      items_.push_back({std::string(name), &entry, nullptr});
    } else {
      child(name).add(path.substr(dot + 1), entry);
    }
  }

  void print(const std::string& indent, bool with_origins, std::string& text) const {
    for (const Item& item : items_) {
      text += indent + yaml_text(item.name) + ":";
      if (item.map) {
        text += "\n";
        item.map->print(indent + "  ", with_origins, text);
      } else {
        text.append(" ").append(yaml_value(item.entry->key, item.entry->value));
        if (with_origins) text.append("  # ").append(item.entry->origin.text);
        text += "\n";
      }
    }
  }

 private:
  struct Item {
    std::string name;
    const Entry* entry;
    std::unique_ptr<Map> map;  // null: a key
  };

  Map& child(std::string_view name) {
    for (Item& item : items_) {
      if (item.name == name) return *item.map;
    }
    items_.push_back({std::string(name), nullptr, std::make_unique<Map>()});
    return *items_.back().map;
  }

  std::vector<Item> items_;
};

std::string print(const std::vector<Entry>& entries, bool with_origins) {
  Map root;
  for (const Entry& entry : entries) root.add(entry.path, entry);
  std::string text;
  root.print("", with_origins, text);
  return text;
}

}  // namespace

std::string Config::to_yaml() const {
  return print(entries_, false);
}

std::string Config::to_yaml_with_origins() const {
  return print(entries_, true);
}

}  // namespace settrain::config
