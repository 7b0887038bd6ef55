// Whether this machine has gnuplot, for tests that draw.
#pragma once

#include "src/core/error.h"
#include "src/plot/pictures.h"
#include "tests/support/temporary_folder.h"

namespace settrain::test {

inline constexpr const char* kNoGnuplot = "Debian's package gnuplot-nox is not installed";

inline bool has_gnuplot() {
  const TemporaryFolder folder;
  try {
    run_gnuplot(folder.path(), {"-e", "set terminal pngcairo"});
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace settrain::test
