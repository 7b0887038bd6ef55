#include "src/config/read_value.h"

#include "src/config/describe.h"
#include "src/config/range.h"
#include "src/config/text.h"
#include "src/config/typing.h"

namespace settrain::config {
namespace {

constexpr size_t kLongestAdvice = 60;  // bytes

template <class T>
bool holds(const Key& key) {
  return std::holds_alternative<T>(key.default_value);
}

/// A value, or an element of a list. Throws InvalidValue.
Value convert(const Key& key, const Scalar& scalar) {
  Value value = scalar.text;
  if (holds<bool>(key)) {
    value = to_bool(scalar);
  } else if (holds<int64_t>(key) || holds<Integers>(key)) {
    for (const auto& [word, meaning] : key.words) {
      if (scalar.text == word) return meaning;
    }
    value = to_integer(scalar, key);
  } else if (holds<double>(key) || holds<Reals>(key)) {
    value = to_real(scalar);
  }
  const std::string error = element_error(key, value);
  if (!error.empty()) throw InvalidValue(error);
  return value;
}

Value empty_list(const Key& key) {
  if (holds<Integers>(key)) return Integers{};
  if (holds<Reals>(key)) return Reals{};
  return Texts{};
}

void append(Value& list, const Value& element) {
  if (auto* integers = std::get_if<Integers>(&list)) integers->push_back(std::get<int64_t>(element));
  if (auto* reals = std::get_if<Reals>(&list)) reals->push_back(std::get<double>(element));
  if (auto* texts = std::get_if<Texts>(&list)) texts->push_back(std::get<std::string>(element));
}

class ValueReader {
 public:
  ValueReader(const std::string& path, const Key& key, const Lookup& lookup, Problems& problems)
      : path_(path), key_(key), lookup_(lookup), problems_(problems) {}

  std::optional<Value> scalar(const YamlNode& node) {
    if (!node.is(YamlNode::Kind::kScalar)) return fail(node, "a list is not one " + type_text(key_));
    try {
      const Expanded expanded = expand(node.text, lookup_);
      // Flow style demands quotes around ${...}; they say nothing about the type.
      return convert(key_, {expanded.text, node.quoted && !expanded.replaced});
    } catch (const InvalidValue& error) {
      return fail(node, error.what());
    } catch (const BrokenReference&) {
      return std::nullopt;
    }
  }

  std::optional<Value> list(const YamlNode& node) {
    if (!node.is(YamlNode::Kind::kList)) {
      return fail(node, in_quotes(node.text) + " is not a " + type_text(key_) + ", write [" +
                            on_one_line(node.text.substr(0, kLongestAdvice)) + "]");
    }
    Value list = empty_list(key_);
    bool valid = true;
    for (const YamlNode& element : node.values) {
      const std::optional<Value> value = scalar(element);
      valid = valid && value;
      if (valid) append(list, *value);
    }
    return valid ? std::optional(std::move(list)) : std::nullopt;
  }

  std::nullopt_t fail(const YamlNode& node, const std::string& message) {
    problems_.add(node.origin, path_, message);
    return std::nullopt;
  }

 private:
  const std::string& path_;
  const Key& key_;
  const Lookup& lookup_;
  Problems& problems_;
};

}  // namespace

std::optional<Value> read_value(const std::string& path, const Key& key, const YamlNode& node, const Lookup& lookup,
                                Problems& problems) {
  ValueReader reader(path, key, lookup, problems);
  std::optional<Value> value = is_list(key) ? reader.list(node) : reader.scalar(node);
  if (!value) return value;
  const std::string error = whole_error(key, *value);
  return error.empty() ? value : reader.fail(node, error);
}

}  // namespace settrain::config
