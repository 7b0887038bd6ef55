// Helpers of the libFuzzer targets of tests/fuzz.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "src/core/error.h"

namespace settrain::test {

/// Aborts where `holds` is false; libFuzzer reports that as a finding.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// The result of `read`, or nullopt where it throws one of settrain's errors. Every other exception ends the program.
template <class Read>
std::optional<std::invoke_result_t<Read>> unless_refused(const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace settrain::test
