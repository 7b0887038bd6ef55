// A resolved configuration: every key of the schema has a value, and knows the value's origin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "src/config/key.h"
#include "src/config/schema.h"

namespace settrain::config {

/// The place where a value was written: "file.yaml:3:7", "--set a.b=v", or "default".
struct Origin {
  std::string text;
  // The place among all others, by which reports are sorted: the file that was asked for, then what it extends, then
  // overrides, then defaults.
  int source = 0, line = 0, column = 0;

  static constexpr int kDefault = 1 << 30;  // the source of defaults
  static constexpr const char* kDefaultText = "default";
  bool is_default() const { return source == kDefault; }
};

/// A key with its value.
struct Entry {
  std::string path;  // "optimizer.lr"
  Key key;
  Value value;
  Origin origin;
};

/// A number that changes by epoch.
struct Curve {
  std::string path;  // "loss.tau"
  double from = 0, to = 0;
  std::string shape;  // linear, cosine or exponential

  /// The number in an epoch, from 0, of a run of `epochs`: `from` in the first one and `to` in the last; `to` where
  /// there is only one, or none.
  double at(int64_t epoch, int64_t epochs) const;
};

/// Values by path, in the schema's order; only the chosen variants' keys are there.
class Config {
 public:
  explicit Config(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  /// The value at `path`. Throws std::logic_error where the schema has no such key: a mistake in the program.
  template <class T>
  const T& get(std::string_view path) const {
    return std::get<T>(at(path).value);
  }
  const Entry& at(std::string_view path) const;
  bool has(std::string_view path) const;
  const std::vector<Entry>& entries() const { return entries_; }

  /// The numbers of the section that change by epoch. They have the entries PATH.from, PATH.to and PATH.curve, and none
  /// at PATH.
  std::vector<Curve> curves(std::string_view section) const;

  /// Fills an options struct with the values of all the keys that were declared for it (see key()) in `section`; a
  /// number that changes by epoch has its last epoch's value. Throws std::logic_error where none was: a mistake in the
  /// program.
  template <class Options>
  Options read(std::string_view section) const {
    Options options;
    fill(section, typeid(Options), &options);
    return options;
  }

  /// A copy with another value at `path`, which must be of the key's type.
  Config with(std::string_view path, Value value) const;
  /// The same for a default that suits the data, `why`: "for 3 classes".
  Config with_default(std::string_view path, Value value, const std::string& why) const;

  /// Throws ConfigError: "file.yaml:3:7: loss.k: `message`". For mistakes that show only once data or model are known.
  [[noreturn]] void fail(std::string_view path, const std::string& message) const;

  /// Fails where the key has another value than its default and nothing reads it: "is read only with `condition`".
  void refuse_unread(std::string_view path, bool is_read, const std::string& condition) const;

  /// The resolved YAML, every key with its value; load() of it gives the same config, to the last bit of every number.
  std::string to_yaml() const;
  /// The same YAML with a comment behind every line, which says where the value came from.
  std::string to_yaml_with_origins() const;

 private:
  void fill(std::string_view section, std::type_index owner, void* options) const;

  std::vector<Entry> entries_;
};

}  // namespace settrain::config
