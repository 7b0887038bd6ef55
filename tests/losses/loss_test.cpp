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

TEST_CASE("A loss' numbers follow the epoch, and nothing before it") {
  LossContext context = context_of(8);
  context.epochs = 5;
  const auto value = [&](Loss& loss, int64_t epoch) {
    LossInput input = input_of(kScores, kTwoLabels);
    input.epoch = epoch;
    return loss(input).per_sample;
  };
  // Each key that may change, in some loss.
  const std::vector<std::pair<std::string, std::string>> keys{{"smoothed_topk_hinge", "tau"},
                                                              {"smoothed_topk_hinge", "alpha"},
                                                              {"noised_topk", "epsilon"},
                                                              {"noised_topk_imbalanced", "max_margin"},
                                                              {"exact_topk", "margin"},
                                                              {"topk_hinge", "smoothing.epsilon"},
                                                              {"focal", "gamma"},
                                                              {"logit_adjusted", "tau"},
                                                              {"expected_positive_regularisation", "beta"}};
  for (const auto& [name, key] : keys) {
    CAPTURE(name, key);
    const auto changing = build_loss(name, context, {key + "={from: 0.9, to: 0.1}"});
    for (const int64_t epoch : {3, 0, 4, 3, 1}) {
      const double now = 0.9 - 0.2 * static_cast<double>(epoch);
      const auto fixed = build_loss(name, context, {key + "=" + std::to_string(now)});
      CHECK(at::allclose(value(*changing, epoch), value(*fixed, epoch), 1e-6, 1e-7));
    }
    CHECK_FALSE(at::allclose(value(*changing, 0), value(*changing, 4)));
  }
}

TEST_CASE("A changing loss has its class weights, its scale, and at the end its last numbers") {
  LossContext context = context_of(8);
  context.epochs = 3;
  const std::vector<std::string> weights{"class_weights=list", "class_weight_list=[1, 2, 3, 4, 5, 6, 7, 8]"};
  std::vector<std::string> changing = weights, fixed = weights;
  changing.emplace_back("max_margin={from: 0.5, to: 0.25, curve: cosine}");
  fixed.emplace_back("max_margin=0.25");
  const auto a = build_loss("ldam", context, changing), b = build_loss("ldam", context, fixed);
  CHECK(a->score_scale() == b->score_scale());
  LossInput input = input_of(kScores, kTwoLabels);
  input.epoch = 2;
  CHECK(at::equal((*a)(input).per_sample, (*b)(input).per_sample));
  input.epoch = 0;
  CHECK_FALSE(at::equal((*a)(input).per_sample, (*b)(input).per_sample));
}

TEST_CASE("An exponential curve stays above 0") {
  const auto error = [](const std::string& curve) {
    return [curve] { build_loss("focal", context_of(8), {"gamma={" + curve + ", curve: exponential}"}); };
  };
  CHECK_THROWS_WITH(error("from: 1, to: 0")(), Contains("loss.gamma.to"));
  CHECK_THROWS_WITH(error("from: 0, to: 1")(), Contains("loss.gamma.from"));
  CHECK_NOTHROW(error("from: 0.5, to: 1")());
}

TEST_CASE("A mistyped loss is answered with the nearest name") {
  CHECK_THROWS_WITH(test::builtin_losses().at("noised_topk_imbalance"), Contains("'noised_topk_imbalanced'"));
}

}  // namespace
}  // namespace settrain
