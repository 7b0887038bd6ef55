// From a scalar's text to a number, a boolean or a text; strict, and every refusal says what to write instead.
#pragma once

#include <cstdint>
#include <string>

#include "src/config/interpolate.h"
#include "src/config/key.h"

namespace settrain::config {

/// A scalar, its references replaced.
struct Scalar {
  std::string text;
  bool quoted = false;  // only text
};

// All throw InvalidValue.
bool to_bool(const Scalar& scalar);
/// `key` for its words: auto.
int64_t to_integer(const Scalar& scalar, const Key& key);
double to_real(const Scalar& scalar);

/// Whether the key holds a list.
bool is_list(const Key& key);

}  // namespace settrain::config
