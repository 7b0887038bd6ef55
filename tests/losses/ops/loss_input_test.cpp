#include "losses/ops/loss_input.h"

#include <ATen/ATen.h>

#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using Catch::Contains;

const at::Tensor& set_scores() {
  static const at::Tensor tensor = at::arange(8, at::kDouble).view({2, 4}) / 3;
  return tensor;
}

LossInput input_with(const std::vector<int64_t>& offsets, const std::vector<int64_t>& classes) {
  LossInput input = test::input_of(set_scores(), at::tensor({0, 0}, at::kLong));
  input.label_sets = {at::tensor(offsets, at::kLong), at::tensor(classes, at::kLong)};
  return input;
}

TEST_CASE("an indicator of sets, or of labels") {
  const LossInput input = input_with({0, 1, 4}, {2, 0, 3, 0});
  CHECK(at::equal(label_indicator(input.label_sets, input.labels, set_scores()),
                  at::tensor({0, 0, 1, 0, 1, 0, 0, 1}, at::kDouble).view({2, 4})));
  CHECK(at::equal(label_indicator({}, at::tensor({1, 3}, at::kLong), set_scores()),
                  at::tensor({0, 1, 0, 0, 0, 0, 0, 1}, at::kDouble).view({2, 4})));
}

TEST_CASE("for losses of sets one label is a set of one") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (!entry.takes_label_sets) continue;
    CAPTURE(entry.name);
    const auto loss = test::build_loss(entry.name, test::context_of(4));
    const at::Tensor alone = (*loss)(test::input_of(set_scores(), at::tensor({2, 1}, at::kLong))).per_sample;
    CHECK(at::equal(alone, (*loss)(input_with({0, 1, 2}, {2, 1})).per_sample));
    CHECK_FALSE(at::equal(alone, (*loss)(input_with({0, 1, 3}, {2, 1, 3})).per_sample));
  }
}

TEST_CASE("multi-label binary cross-entropy by hand") {
  const auto loss = test::build_loss("bce_multilabel", test::context_of(4));
  const at::Tensor log_p = at::log_sigmoid(set_scores()), log_not_p = at::log_sigmoid(-set_scores());
  const at::Tensor expected = -at::stack({log_p[0][2] + log_not_p[0][0] + log_not_p[0][1] + log_not_p[0][3],
                                          log_p[1][0] + log_p[1][3] + log_not_p[1][1] + log_not_p[1][2]});
  CHECK(test::near((*loss)(input_with({0, 1, 3}, {2, 0, 3})).per_sample, expected));
}

TEST_CASE("sets that are none are refused, with the sample") {
  const auto loss = test::build_loss("bce_multilabel", test::context_of(4));
  CHECK_THROWS_WITH((*loss)(input_with({0, 2}, {2, 0})),
                    Contains("label_sets.offsets") && Contains("[3]") && Contains("[2]"));
  CHECK_THROWS_WITH((*loss)(input_with({0, 2, 2}, {2, 0})), Contains("label_sets.offsets") && Contains("sample 1"));
  CHECK_THROWS_WITH((*loss)(input_with({0, 1, 3}, {2, 0})), Contains("label_sets.offsets") && Contains("from 1 to 3"));
  CHECK_THROWS_WITH((*loss)(input_with({0, 1, 2}, {2, 4})),
                    Contains("label_sets.classes[1]") && Contains("0 to 3") && Contains("got 4"));
  LossInput wrong_dtype = input_with({0, 1, 2}, {2, 0});
  wrong_dtype.label_sets.classes = at::zeros({2});
  CHECK_THROWS_AS((*loss)(wrong_dtype), ShapeError);
}

}  // namespace
}  // namespace settrain
