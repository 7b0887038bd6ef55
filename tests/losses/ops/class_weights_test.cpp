#include "losses/ops/class_weights.h"

#include <ATen/ATen.h>

#include <numeric>

#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::build_loss;
using test::context_of;

LossInput four_samples() {
  at::manual_seed(2);
  return test::input_of(at::randn({4, 4}, at::kDouble), at::tensor({0, 1, 3, 3}, at::kLong));
}

TEST_CASE("weights by hand, with a mean of 1") {
  // 1/n: 1, 1/4, 1/5, of sum 1.45.
  const std::vector<double> inverse = inverse_frequency_weights({1, 4, 5});
  CHECK(inverse[0] == Approx(3 / 1.45));
  CHECK(inverse[1] == Approx(0.25 * 3 / 1.45));
  // Effective numbers of beta 1/2: 1, 1.75, 1.9375 in units of 1.
  const std::vector<double> effective = effective_number_weights({1, 3, 5}, 0.5);
  const double sum = 1 + 1 / 1.75 + 1 / 1.9375;
  CHECK(effective[0] == Approx(3 / sum));
  CHECK(effective[2] == Approx(3 / 1.9375 / sum));
}

TEST_CASE("effective numbers go from equal weights to inverse frequencies") {
  const std::vector<int64_t> counts{1, 20, 300, 5000};
  for (const double weight : effective_number_weights(counts, 0)) CHECK(weight == Approx(1));
  const auto limit = effective_number_weights(counts, 1 - 1e-12), inverse = inverse_frequency_weights(counts);
  for (size_t j = 0; j < counts.size(); ++j) CHECK(limit[j] == Approx(inverse[j]).epsilon(1e-6));
}

TEST_CASE("a class without images has weight 0 and does not count in the mean") {
  const auto weights = inverse_frequency_weights({2, 0, 2});
  CHECK(weights == std::vector<double>{1, 0, 1});
  CHECK(effective_number_weights({3, 0, 3}, 0.9) == std::vector<double>{1, 0, 1});
}

TEST_CASE("every per-sample loss is multiplied by the weight of its label") {
  const std::vector<double> weights{2, 0.5, 1, 3};
  const at::Tensor expected = at::tensor({2.0, 0.5, 3.0, 3.0}, at::kDouble);
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (entry.couples_samples || entry.takes_label_sets) continue;
    CAPTURE(entry.name);
    std::vector<std::string> settings;
    for (const config::Key& key : entry.keys) {
      if (key.name == "k") settings.push_back("k=2");
    }
    const auto plain = build_loss(entry.name, context_of(4), settings);
    settings.insert(settings.end(), {"class_weights=list", "class_weight_list=[2, 0.5, 1, 3]"});
    const auto weighted = build_loss(entry.name, context_of(4), settings);
    const LossInput input = four_samples();
    CHECK(test::near((*weighted)(input).per_sample, (*plain)(input).per_sample * expected));
    CHECK((*weighted)(input).count == 4);
  }
}

TEST_CASE("deferred weights begin with their epoch") {
  const auto plain = build_loss("cross_entropy", context_of(4));
  const auto deferred =
      build_loss("cross_entropy", context_of(4), {"class_weights=effective_number", "class_weights_from_epoch=3"});
  LossInput input = four_samples();
  input.epoch = 2;
  CHECK(at::equal((*deferred)(input).per_sample, (*plain)(input).per_sample));
  input.epoch = 3;
  const auto weights = effective_number_weights(context_of(4).class_counts, 0.9999);
  const at::Tensor expected = at::tensor({weights[0], weights[1], weights[3], weights[3]}, at::kDouble);
  CHECK(test::near((*deferred)(input).per_sample, (*plain)(input).per_sample * expected));
}

TEST_CASE("the mean over weights takes labels of any device to the CPU") {
  const auto loss = build_loss("cross_entropy", context_of(4),
                               {"class_weights=list", "class_weight_list=[2, 0.5, 1, 3]", "class_weight_mean=weights"});
  const at::Tensor labels = at::tensor({0, 1, 3, 3}, at::kLong);
  CHECK(loss->divisor(labels, 0) == 2 + 0.5 + 3 + 3);
  // The meta device stands for a GPU: its tensors have no memory that the CPU can read, and nothing to copy.
  CHECK_THROWS_WITH(loss->divisor(labels.to(at::kMeta), 0), Contains("copy") && Contains("meta tensor"));
}

TEST_CASE("weights that cannot be are refused with the fix") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (!entry.couples_samples && !entry.takes_label_sets) continue;
    CAPTURE(entry.name);
    CHECK_THROWS_WITH(build_loss(entry.name, context_of(12), {"class_weights=inverse_frequency"}),
                      Contains("loss.class_weights") && Contains(entry.name));
  }
  CHECK_THROWS_WITH(build_loss("cross_entropy", context_of(4), {"class_weights=list", "class_weight_list=[1, 2]"}),
                    Contains("loss.class_weight_list") && Contains("4 weights") && Contains("got 2"));
  CHECK_THROWS_WITH(build_loss("cross_entropy", context_of(4), {"class_weights=list"}),
                    Contains("loss.class_weights:") && Contains("4 weights"));
  CHECK_THROWS_WITH(build_loss("cross_entropy", context_of(2), {"class_weights=list", "class_weight_list=[0, 0]"}),
                    Contains("loss.class_weight_list") && Contains("weights are 0"));
  // Keys that nothing would read.
  CHECK_THROWS_WITH(build_loss("focal", context_of(2), {"class_weight_list=[1, 2]"}),
                    Contains("loss.class_weight_list") && Contains("loss.class_weights: list"));
  CHECK_THROWS_WITH(build_loss("focal", context_of(2), {"class_weights=inverse_frequency", "class_weight_beta=0.9"}),
                    Contains("loss.class_weight_beta") && Contains("effective_number"));
  CHECK_THROWS_WITH(build_loss("focal", context_of(2), {"class_weights_from_epoch=3"}),
                    Contains("loss.class_weights_from_epoch") && Contains("loss.class_weights is none"));
  CHECK_THROWS_WITH(build_loss("focal", context_of(2), {"class_weight_mean=weights"}),
                    Contains("loss.class_weight_mean") && Contains("loss.class_weights is none"));
  CHECK_THROWS_AS(build_loss("focal", context_of(2), {"class_weights=effective_number", "class_weight_beta=1"}),
                  ConfigError);
}

}  // namespace
}  // namespace settrain
