// One configuration key, declared once: its name, type, default, range, unit and sentence. The parser, the range
// checks, the JSON Schema, the reference page and the help all come from this declaration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace settrain::config {

using Integers = std::vector<int64_t>;
using Reals = std::vector<double>;
using Texts = std::vector<std::string>;

/// The value of a key. The alternative of a key's default is the key's type.
using Value = std::variant<bool, int64_t, double, std::string, Integers, Reals, Texts>;

/// One end of a key's range.
struct Bound {
  double value;
  bool included;

  bool operator==(const Bound&) const = default;
};

/// The declaration of a key. Made by key(), refined by the chained calls:
///
///     key("lr", &SgdOptions::lr, 0.1, "Learning rate.").above(0).in("1/step")
///
/// A default that the key itself would refuse (an empty text that is not_empty) means that the user must give the key.
struct Key {
  std::string name;  // may hold dots where it lies in a nested map
  Value default_value;
  std::string help;                                    // one sentence
  std::string unit;                                    // "pixels", "epochs", ...; empty where it has none
  std::optional<Bound> minimum, maximum;               // of the number, or of every element of a list
  std::vector<std::string> choices;                    // the only values of a text, or of every element of a list
  std::vector<std::pair<std::string, int64_t>> words;  // a number that may also be written as a word: auto
  bool non_empty = false;                              // lists and texts
  bool distinct_elements = false;                      // lists
  bool is_free = false;                                // changes how a run is carried out, and none of its numbers
  bool changes = false;                                // a number that may change by epoch, see curve_keys()
  std::type_index owner = typeid(void);                // the options struct it belongs to
  std::function<void(void*, const Value&)> assign;     // writes the value into the member of an `owner`

  Key& at_least(double bound) { return set(minimum, Bound{bound, true}); }
  Key& above(double bound) { return set(minimum, Bound{bound, false}); }
  Key& at_most(double bound) { return set(maximum, Bound{bound, true}); }
  Key& below(double bound) { return set(maximum, Bound{bound, false}); }
  Key& in(std::string the_unit) { return set(unit, std::move(the_unit)); }
  Key& one_of(std::vector<std::string> names) { return set(choices, std::move(names)); }
  Key& not_empty() { return set(non_empty, true); }
  Key& distinct() { return set(distinct_elements, true); }
  Key& free() { return set(is_free, true); }
  Key& by_epoch() { return set(changes, true); }
  Key& word(std::string text, int64_t meaning) {
    words.emplace_back(std::move(text), meaning);
    return *this;
  }

 private:
  template <class Member, class Given>
  Key& set(Member& member, Given given) {
    member = std::move(given);
    return *this;
  }
};

using Keys = std::vector<Key>;

/// "boolean", "integer", "integer or auto", "number", "text", "list of numbers".
std::string type_text(const Key& key);

/// "> 0", ">= 0 and < 1", or an empty text.
std::string bounds_text(const Key& key);

/// Whether the key holds a list.
bool is_list(const Key& key);

/// Says what is wrong with a boolean, number or text that is the key's value or an element of it, or an empty text: "-1
/// is out of range, must be > 0 (1/step)". An integer is taken as one that was written in digits: the meaning of a word
/// may lie out of range.
std::string element_error(const Key& key, const Value& element);

/// Says what is wrong with a whole value whose elements are right, or an empty text: "must not be empty" for a list or
/// text, "names 5 twice" for a list whose elements must be distinct.
std::string whole_error(const Key& key, const Value& value);

/// The keys of the map that may stand for a number that changes by epoch, `tau: {from: 1.0, to: 0.1, curve: linear}`:
/// tau.from, tau.to, which fills the number's own member, and tau.curve.
Keys curve_keys(const Key& key);

/// Whether the key accepts its own default. Where it does not, the user must give a value.
bool is_optional(const Key& key);

/// The keys of all lists, one list after the other.
template <class... More>
Keys joined(Keys keys, const More&... more) {
  (keys.insert(keys.end(), more.begin(), more.end()), ...);
  return keys;
}

/// Declares the key that fills `member`. T is one of the alternatives of Value.
template <class Options, class T>
Key key(std::string name, T Options::*member, std::type_identity_t<T> default_value, std::string help) {
  Key made;
  made.name = std::move(name);
  made.default_value = std::move(default_value);
  made.help = std::move(help);
  made.owner = typeid(Options);
  made.assign = [member](void* options, const Value& value) {
    static_cast<Options*>(options)->*member = std::get<T>(value);
  };
  return made;
}

/// The values of an enumeration with the texts that stand for them in a config.
template <class Enum>
using Named = std::vector<std::pair<std::string, Enum>>;

/// The value that `text` stands for. Throws std::invalid_argument where it is none of them.
template <class Enum>
Enum value_named(const Named<Enum>& values, const std::string& text) {
  for (const auto& [name, value] : values) {
    if (name == text) return value;
  }
  throw std::invalid_argument("'" + text + "' names no value");
}

/// Declares a text that is one of `values`, and fills `member` with the value that it stands for: no other place needs
/// to compare the text.
template <class Options, class Enum>
requires std::is_enum_v<Enum> Key key(std::string name, Enum Options::*member, std::type_identity_t<Enum> default_value,
                                      std::string help, Named<Enum> values) {
  Key made;
  made.name = std::move(name);
  made.help = std::move(help);
  for (const auto& [text, value] : values) {
    if (value == default_value) made.default_value = text;
    made.choices.push_back(text);
  }
  made.owner = typeid(Options);
  made.assign = [member, values = std::move(values)](void* options, const Value& value) {
    static_cast<Options*>(options)->*member = value_named(values, std::get<std::string>(value));
  };
  return made;
}

/// A choice that the program makes where it is left open.
enum class Switch { kAuto, kOn, kOff };

/// The values of a switch: auto, and the texts for on and off.
inline Named<Switch> auto_or(std::string on, std::string off) {
  return {{"auto", Switch::kAuto}, {std::move(on), Switch::kOn}, {std::move(off), Switch::kOff}};
}

}  // namespace settrain::config
