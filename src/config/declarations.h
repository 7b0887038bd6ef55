// A schema, flat: every key of every variant with its full path.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/config/schema.h"

namespace settrain::config {

/// Joins "optimizer" and "lr" to "optimizer.lr"; the top level "" adds nothing.
std::string join_path(std::string_view section, std::string_view name);
/// The two parts of "optimizer.lr": "optimizer" and "lr".
std::string parent_path(const std::string& path);
std::string last_name(const std::string& path);

/// A key of a schema.
struct Declaration {
  std::string path;
  Key key;
  const Section* section;
  const Variant* variant;  // null: allowed whatever the variant
  bool of_curve = false;   // one of the curve_keys() of the key above it
};

/// The variants that were chosen, by section; null where the choice itself is wrong.
using Choices = std::map<const Section*, const Variant*>;

/// The key by which a file chooses the section's variant.
Key selector_key(const Section& section);

/// The variant of that name, or null.
const Variant* find_variant(const Section& section, std::string_view name);

/// The declarations of a schema, in its order; a section's selector comes first. Must not outlive the schema. Throws
/// std::logic_error for a schema that is wrong in itself: a path declared twice for one variant, a default variant that
/// does not exist, a key where a map is, words for what is no integer and no number.
class Declarations {
 public:
  explicit Declarations(const Schema& schema);

  const Schema& schema() const { return schema_; }
  const std::vector<Declaration>& all() const { return all_; }

  /// The declarations of one path: several where variants share a name, none where it is unknown.
  std::vector<const Declaration*> of(const std::string& path) const;
  bool is_key(const std::string& path) const { return by_path_.contains(path); }
  /// Whether keys lie below the path.
  bool is_map(const std::string& path) const { return maps_.contains(path); }

  /// Whether the declaration counts where these variants are chosen.
  static bool is_active(const Declaration& declaration, const Choices& choices);

  /// ", did you mean 'optimizer.lr'?" for an unknown path, among the keys and maps that these variants allow: the only
  /// one of that name elsewhere, or the nearest beside it; where its map is unknown too, the nearest of all.
  std::string suggestion(const std::string& path, const Choices& choices) const;

 private:
  void declare(const Section& section, const Variant* variant, const Key& key);
  void add(const Declaration& declaration);

  const Schema& schema_;
  std::vector<Declaration> all_;
  std::multimap<std::string, size_t> by_path_;
  std::set<std::string> maps_;  // every proper prefix of a path
};

}  // namespace settrain::config
