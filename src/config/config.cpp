#include "src/config/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <stdexcept>
#include <utility>

#include "src/config/declarations.h"
#include "src/config/problems.h"
#include "src/config/value.h"

namespace settrain::config {
namespace {

auto find(const std::vector<Entry>& entries, std::string_view path) {
  return std::find_if(entries.begin(), entries.end(), [path](const Entry& entry) { return entry.path == path; });
}

// Entries with the rest of their paths below a map of the file.
using MapEntries = std::vector<std::pair<std::string_view, const Entry*>>;

std::string_view first_name_of(std::string_view path) {
  return path.substr(0, path.find('.'));
}

// Appends a map of the file. Its keys and maps keep the order in which they first come.
void print_map(const MapEntries& entries, const std::string& indent, bool with_origins, std::string& text) {
  std::set<std::string_view> printed;
  for (const auto& [path, entry] : entries) {
    const std::string_view name = first_name_of(path);
    if (!printed.insert(name).second) continue;
    text += indent + yaml_text(name) + ":";
    if (name == path) {
      text += " " + yaml_value(entry->key, entry->value) + (with_origins ? "  # " + entry->origin.text : "") + "\n";
      continue;
    }
    MapEntries below;
    for (const auto& [other, its_entry] : entries) {
      if (first_name_of(other) == name) below.emplace_back(other.substr(name.size() + 1), its_entry);
    }
    text += "\n";
    print_map(below, indent + "  ", with_origins, text);
  }
}

std::string dump(const std::vector<Entry>& entries, bool with_origins) {
  MapEntries all;
  for (const Entry& entry : entries) all.emplace_back(entry.path, &entry);
  std::string text;
  print_map(all, "", with_origins, text);
  return text;
}

}  // namespace

const Entry& Config::at(std::string_view path) const {
  const auto found = find(entries_, path);
  if (found == entries_.end()) throw std::logic_error("the configuration has no key '" + std::string(path) + "'");
  return *found;
}

bool Config::has(std::string_view path) const {
  return find(entries_, path) != entries_.end();
}

Config Config::with(std::string_view path, Value value) const {
  at(path);  // throws where there is no such key
  Config changed = *this;
  for (Entry& entry : changed.entries_) {
    if (entry.path == path) entry.value = value;
  }
  return changed;
}

Config Config::with_default(std::string_view path, Value value, const std::string& why) const {
  Config changed = with(path, std::move(value));
  for (Entry& entry : changed.entries_) {
    if (entry.path == path) entry.origin = {Origin::kDefaultText + (" " + why), Origin::kDefault};
  }
  return changed;
}

void Config::fail(std::string_view path, const std::string& message) const {
  throw PlacedError(at(path).origin, std::string(path), message);
}

void Config::refuse_unread(std::string_view path, bool is_read, const std::string& condition) const {
  const Entry& entry = at(path);
  if (!is_read && entry.value != entry.key.default_value) fail(path, "is read only with " + condition);
}

double Curve::at(int64_t epoch, int64_t epochs) const {
  if (epoch >= epochs - 1) return to;
  const double progress = static_cast<double>(epoch) / static_cast<double>(epochs - 1);
  if (shape == "exponential") return from * std::pow(to / from, progress);
  const double passed = shape == "cosine" ? 0.5 * (1 - std::cos(std::numbers::pi * progress)) : progress;
  return from + (to - from) * passed;
}

std::vector<Curve> Config::curves(std::string_view section) const {
  std::vector<Curve> found;
  for (const Entry& entry : entries_) {
    const std::string path = parent_path(entry.path);
    if (!path.starts_with(join_path(section, "")) || entry.path != path + ".from") continue;
    if (!has(path + ".curve")) continue;
    found.push_back({path, get<double>(entry.path), get<double>(path + ".to"), get<std::string>(path + ".curve")});
  }
  return found;
}

void Config::fill(std::string_view section, std::type_index owner, void* options) const {
  bool filled = false;
  for (const Entry& entry : entries_) {
    if (entry.key.owner != owner || entry.path != join_path(section, entry.key.name)) continue;
    entry.key.assign(options, entry.value);
    filled = true;
  }
  if (!filled) {
    throw std::logic_error("section '" + std::string(section) + "' of this configuration has no keys of " +
                           owner.name());
  }
}

std::string Config::to_yaml() const {
  return dump(entries_, false);
}

std::string Config::to_yaml_with_origins() const {
  return dump(entries_, true);
}

}  // namespace settrain::config
