#include <ATen/Context.h>

#include "src/measure/check/checks.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

TEST_CASE("the models agree with Python's PyTorch on a GPU", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  for (const char* name : {"resnet8_grey_normalised", "resnet20", "resnet18", "densenet121", "densenet_bc_40_40",
                           "resnext50_32x4d_64px", "convnext_tiny_64px", "vit_b_16_64px", "efficientnet_b0_64px",
                           "efficientnet_v2_s_64px", "efficientnet_lite0_72px", "mobilenet_v2_64px",
                           "mobilenet_v3_small_64px", "shufflenet_v2_x1_0_64px", "vit_reg4_parts", "vit_clip_parts"}) {
    const auto rows = check_models(test::builtin_registries().models, at::kCUDA,
                                   {test::golden_path("models/" + std::string(name) + ".json")});
    CHECK(rows.size() >= 10);
    for (const CheckRow& row : rows) {
      CAPTURE(row.name, row.what, row.max_error, row.tolerance, row.note);
      CHECK(row.passed);
    }
  }
}

}  // namespace
}  // namespace settrain
