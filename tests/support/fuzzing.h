// What the libFuzzer targets of tests/fuzz share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "src/core/error.h"

namespace settrain::test {

/// Ends the program where `holds` is false, which libFuzzer takes for a finding.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// What `read` returns, or nullopt where it refuses its input by one of settrain's errors. Every other exception goes
/// on, and ends the program.
template <class Read>
std::optional<std::invoke_result_t<Read>> unless_refused(const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace settrain::test
