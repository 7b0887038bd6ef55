#include "src/cuda/cuda_library.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <stdexcept>

#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {

TEST_CASE("without a GPU there are no calls of the CUDA library, and no complaint") {
  SKIP_UNLESS(!at::hasCUDA(), "there is a GPU");
  CHECK_FALSE(has_gpu());
  CHECK(why_no_gpu().empty());
  CHECK_THROWS_AS(cuda_calls(), std::logic_error);
}

#ifdef SETTRAIN_HAS_CUDA
TEST_CASE("libsettrain_cuda.so is where the program looks for it, and lacks no symbol") {
  void* const library = ::dlopen("libsettrain_cuda.so", RTLD_NOW | RTLD_LOCAL);
  INFO((library ? "" : ::dlerror()));
  REQUIRE(library);
  const auto* const calls = static_cast<const CudaCalls*>(::dlsym(library, "settrain_cuda_calls"));
  REQUIRE(calls);
  CHECK(calls->take_stream);
  CHECK(calls->begin_capture);
  CHECK(calls->connect_nccl);
}
#endif

}  // namespace settrain
