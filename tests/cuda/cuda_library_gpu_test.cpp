#include <ATen/Context.h>

#include "src/cuda/cuda_library.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {

TEST_CASE("with a GPU there are the calls of the CUDA library", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  CHECK(has_gpu());
  CHECK(why_no_gpu().empty());
  CHECK(cuda_calls().take_stream);
}

}  // namespace settrain
