#include <ATen/ATen.h>

#include "models/entries.h"
#include "models/model.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr ModelContext kDensenetInput{100, 3, 32, 32};

TEST_CASE("DenseNet 40-40 has the papers' 1.94 M parameters with bottlenecks, and 11.72 M without") {
  CHECK(make_small_densenet({40, 40}, true, {}, kDensenetInput)->num_parameters() == 1941620);
  CHECK(make_small_densenet({40, 40}, false, {}, kDensenetInput)->num_parameters() == 11720660);
}

TEST_CASE("depths that give no whole number of layers are refused, with the form that is wanted") {
  for (const int64_t depth : {7, 9, 41, 43}) {
    CAPTURE(depth);
    CHECK_THROWS_WITH(make_small_densenet({depth, 12}, true, {}, kDensenetInput),
                      Catch::Contains("model.depth") && Catch::Contains("6 n + 4"));
  }
  CHECK_THROWS_WITH(make_small_densenet({41, 12}, true, {}, kDensenetInput),
                    Catch::Contains("model.depth") && Catch::Contains("40 or 46"));
  CHECK_THROWS_WITH(make_small_densenet({41, 12}, false, {}, kDensenetInput),
                    Catch::Contains("3 n + 4") && Catch::Contains("40 or 43"));
  const auto plain = make_small_densenet({43, 12}, false, {}, kDensenetInput);  // (43 - 4) / 3 layers a block
  CHECK(plain->named_parameters().find("block3.layer.12.conv1.weight") != nullptr);
  CHECK(plain->named_parameters().find("block3.layer.13.conv1.weight") == nullptr);
}

TEST_CASE("images of another size than 32x32 are refused, which the published code answers with rows too many") {
  CHECK_THROWS_WITH(make_small_densenet({40, 12}, true, {}, {100, 3, 64, 64}),
                    Catch::Contains("32x32") && Catch::Contains("64x64"));
  CHECK_THROWS_AS(make_small_densenet({40, 12}, true, {}, {10, 1, 28, 28}), KeyError);
  const auto model = make_small_densenet({10, 4}, true, {}, kDensenetInput);
  CHECK(model->forward(at::randn({2, 3, 32, 32})).scores.sizes() == at::IntArrayRef{2, 100});
  CHECK_THROWS_WITH(model->forward(at::randn({2, 3, 64, 64})), Catch::Contains("images") &&
                                                                   Catch::Contains("[*, 3, 32, 32]") &&
                                                                   Catch::Contains("[2, 3, 64, 64]"));
}

}  // namespace
}  // namespace settrain
