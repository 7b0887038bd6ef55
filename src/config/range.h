// The values a key accepts beyond its type.
#pragma once

#include <string>

#include "src/config/key.h"

namespace settrain::config {

/// What is wrong with a boolean, number or text that is the key's value or an element of it, or an empty string: "-1 is
/// out of range, must be > 0 (1/step)". An integer is taken as one that was written in digits: the meaning of a word
/// may lie out of range.
std::string element_error(const Key& key, const Value& element);

/// What is wrong with a whole value whose elements are right, or an empty string: "must not be empty" for a list or
/// text, "names 5 twice" for a list, where the key minds.
std::string whole_error(const Key& key, const Value& value);

/// "> 0", ">= 0 and < 1", or an empty string.
std::string bounds_text(const Key& key);

/// Whether the key accepts its own default. Where it does not, the user must give a value.
bool is_optional(const Key& key);

}  // namespace settrain::config
