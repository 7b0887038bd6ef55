#include "src/config/config.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/config/declarations.h"
#include "src/config/problems.h"

namespace settrain::config {
namespace {

auto find(const std::vector<Entry>& entries, std::string_view path) {
  return std::find_if(entries.begin(), entries.end(), [path](const Entry& entry) { return entry.path == path; });
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
    if (entry.path == path) entry.value = std::move(value);
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

}  // namespace settrain::config
