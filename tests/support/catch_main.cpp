#define CATCH_CONFIG_RUNNER  // for version 2; version 3 has its main in a library of its own

#include "src/core/process.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

#ifdef __SANITIZE_THREAD__
// GDAL, which OpenCV brings along, takes two locks of its own in either order when it starts.
extern "C" const char* __tsan_default_suppressions() {
  return "deadlock:libgdal.so\n";
}
#endif

/// 0: all passed. 77: none failed, and some were skipped, which CTest shows as such. Anything else: a failure.
int main(int argc, char** argv) {
  settrain::keep_onednn_from_amx();
  const int failures = Catch::Session().run(argc, argv);
  if (failures != 0) return 1;
  return settrain::test::any_skipped ? 77 : 0;
}
