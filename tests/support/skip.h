// Visible skipping of tests whose requirements a machine may lack. They are in files of their own (*_data_test.cpp,
// *_gpu_test.cpp, *_python_test.cpp), since CTest shows a file as skipped where a case was skipped and none failed.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

/// Leaves the test case, saying why, unless `condition` holds.
#define SKIP_UNLESS(condition, why)                  \
  if (!(condition)) {                                \
    settrain::test::any_skipped = true;              \
    std::cout << "[skipped] " << (why) << std::endl; \
    return;                                          \
  }

namespace settrain::test {

/// Whether a case of this program was skipped; the program's exit code says so (catch_main.cpp).
inline bool any_skipped = false;

/// The environment variable, or an empty string. SETTRAIN_TEST_DATA: folder of real data sets. SETTRAIN_PYTHON: a
/// Python with torch, numpy, safetensors and tensorboard. SETTRAIN_SOURCE_DIR: the root of the source tree (set by
/// CTest).
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// A file below tests/golden/.
inline std::string golden_path(const std::string& name) {
  return environment("SETTRAIN_SOURCE_DIR") + "/tests/golden/" + name;
}

}  // namespace settrain::test
