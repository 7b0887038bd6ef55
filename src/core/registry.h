// A list of named things a config can choose from: losses, models, data sets, metrics.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {

/// Entries in the order they were added. `Entry` has a member `std::string name`. Filled by an explicit call (a
/// function `register_builtin_...`), never by a static initialiser.
template <class Entry>
class Registry {
 public:
  /// `what` names the kind of thing in messages: "loss".
  explicit Registry(std::string what) : what_(std::move(what)) {}

  /// Throws std::logic_error where the name is taken: that is a mistake in the program.
  void add(Entry entry) {
    for (const Entry& other : entries_) {
      if (other.name == entry.name) throw std::logic_error(what_ + " '" + entry.name + "' is registered twice");
    }
    entries_.push_back(std::move(entry));
  }

  /// Throws ConfigError with the nearest name where there is none of that name.
  const Entry& at(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return entry;
    }
    throw ConfigError("there is no " + what_ + " '" + name + "'" + did_you_mean(name, names()));
  }

  const std::vector<Entry>& entries() const { return entries_; }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

 private:
  std::string what_;
  std::vector<Entry> entries_;
};

}  // namespace settrain
