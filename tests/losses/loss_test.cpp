#include "losses/loss.h"

#include <ATen/ATen.h>

#include <limits>

#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::build_loss;
using test::context_of;
using test::input_of;

const at::Tensor kScores = at::zeros({3, 8});
const at::Tensor kTwoLabels = at::arange(3, at::kLong);

TEST_CASE("A loss refuses input that does not fit, and names it") {
  const auto loss = build_loss("cross_entropy", context_of(8));
  const auto call = [&](const at::Tensor& scores, const at::Tensor& labels) { (*loss)(input_of(scores, labels)); };
  CHECK_NOTHROW(call(kScores, kTwoLabels));
  CHECK_THROWS_AS(call({}, kTwoLabels), ShapeError);
  CHECK_THROWS_WITH(call(at::zeros({0, 8}), kTwoLabels.slice(0, 0, 0)),
                    Contains("scores") && Contains("at least one sample"));
  CHECK_THROWS_WITH(call(at::zeros({3, 7}), kTwoLabels),
                    Contains("scores") && Contains("[*, 8]") && Contains("[3, 7]"));
  CHECK_THROWS_WITH(call(kScores.to(at::kInt), kTwoLabels), Contains("scores") && Contains("float32"));
  CHECK_THROWS_WITH(call(kScores, at::zeros({4}, at::kLong)), Contains("labels") && Contains("[3]") && Contains("[4]"));
  CHECK_THROWS_WITH(call(kScores, kTwoLabels.to(at::kInt)), Contains("labels") && Contains("int64"));
  CHECK_THROWS_WITH(call(kScores, kTwoLabels + 6), Contains("labels[2]") && Contains("0 to 7") && Contains("got 8"));
  CHECK_THROWS_WITH(call(kScores, kTwoLabels - 1), Contains("labels[0]") && Contains("0 to 7") && Contains("got -1"));
}

TEST_CASE("A loss checks a second head's scores like the first's") {
  const auto loss = build_loss("cross_entropy", context_of(8));
  LossInput input = input_of(kScores, kTwoLabels);
  input.output.scores_multi = at::zeros({2, 8});
  CHECK_THROWS_WITH((*loss)(input), Contains("scores_multi") && Contains("[3, 8]") && Contains("[2, 8]"));
  input.output.scores_multi = at::zeros({3, 8});
  CHECK_NOTHROW((*loss)(input));
}

TEST_CASE("A loss refuses given noise that holds a NaN") {
  const auto loss = build_loss("noised_topk", context_of(8), {"k=2", "num_draws=3"});
  at::Tensor noise = at::zeros({3, 3, 8});
  CHECK_NOTHROW((*loss)(input_of(kScores, kTwoLabels, noise)));
  noise[1][2][7] = std::numeric_limits<double>::quiet_NaN();
  for (const LossMethod method : {LossMethod::kFast, LossMethod::kPlain}) {
    LossInput input = input_of(kScores, kTwoLabels, noise);
    input.method = method;
    CHECK_THROWS_AS((*loss)(input), ShapeError);
    CHECK_THROWS_WITH((*loss)(input), Contains("noise") && Contains("finite") && Contains("NaN"));
  }
}

TEST_CASE("A mistyped loss is answered with the nearest name") {
  CHECK_THROWS_WITH(test::builtin_losses().at("noised_topk_imbalance"), Contains("'noised_topk_imbalanced'"));
}

}  // namespace
}  // namespace settrain
