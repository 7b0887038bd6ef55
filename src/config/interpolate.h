// Replaces ${...} within a scalar.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace settrain::config {

/// A value that cannot be used; the message lacks place and path, which the caller knows.
class InvalidValue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value refers to a key that is wrong itself, which is reported there.
class BrokenReference : public std::exception {};

/// Gives the text that replaces `${name}`, for names without env:. Throws InvalidValue or BrokenReference.
using Lookup = std::function<std::string(const std::string& name)>;

struct Expanded {
  std::string text;
  bool replaced;  // held a ${...}
};

/// Replaces `${env:VAR}`, `${env:VAR:-default}`, `${name}` by lookup, and `$${` by a literal `${`. Defaults may hold
/// ${...} themselves. The replacements are not expanded again. Throws InvalidValue for an unset variable without
/// default, a missing `}`, and a result of more than 64 KiB.
Expanded expand(std::string_view text, const Lookup& lookup);

/// The text which expand() turns back into `text`.
std::string escape_references(std::string_view text);

}  // namespace settrain::config
