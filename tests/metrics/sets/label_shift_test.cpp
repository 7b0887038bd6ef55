// Shares of classes at a place, on data whose probabilities are known.
#include "metrics/sets/label_shift.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <vector>

#include "metrics/sets/calibrate.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

const std::vector<double> kTrained{0.4, 0.3, 0.2, 0.1}, kThere{0.05, 0.15, 0.3, 0.5};

at::Tensor tensor_of(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kDouble);
}

struct Drawn {
  at::Tensor scores, labels;
};

/// Images whose class c has the mean 1.5 e_c and unit variance, with the scores log P(y | x) at the shares kTrained.
Drawn draw(int64_t images, const std::vector<double>& shares, uint64_t seed) {
  at::manual_seed(seed);
  const at::Tensor labels = at::multinomial(tensor_of(shares), images, /*replacement=*/true);
  const at::Tensor x =
      at::randn({images, 4}, at::kDouble).add(at::eye(4, at::kDouble).mul(1.5).index_select(0, labels));
  return {at::log_softmax(x.mul(1.5).add(tensor_of(kTrained).log()), 1), labels};
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  return tensor_of(a).sub(tensor_of(b)).abs().sum().item<double>();
}

}  // namespace

TEST_CASE("offsets change the shares that the softmax assumes") {
  const at::Tensor scores = at::randn({5, 4}, at::kDouble);
  const at::Tensor p = at::softmax(scores, 1).mul(tensor_of(kThere)).div(tensor_of(kTrained));
  const at::Tensor corrected = with_offsets(scores.to(at::kFloat), score_offsets(kThere, kTrained));
  CHECK(at::allclose(at::softmax(corrected, 1), p.div(p.sum(1, true)), 1e-6));
  // Shares of any sum are taken.
  CHECK(score_offsets({1, 3}, {1, 1})[1] == Approx(std::log(3.0)));
}

TEST_CASE("a class that does not occur comes last, with a probability that counts for nothing") {
  const std::vector<double> offsets = score_offsets({0.5, 0, 0.5}, {1, 1, 1});
  CHECK(offsets[1] == -std::numeric_limits<double>::infinity());
  const at::Tensor corrected = with_offsets(at::tensor({1., 50., 2.}, at::kDouble).unsqueeze(0), offsets);
  CHECK(corrected.argmin(1).item<int64_t>() == 1);
  const at::Tensor p = probabilities_of(corrected, ProbabilityKind::kSoftmax);
  CHECK(p[0][1].item<double>() < 1e-100);
  CHECK(p[0][2].item<double>() == Approx(1 / (1 + std::exp(-1.0))));
}

TEST_CASE("both estimates find the shares of unlabelled images") {
  const Drawn known = draw(20000, kTrained, 1), there = draw(20000, kThere, 2);
  const std::vector<double> by_likelihood =
      shares_by_likelihood(probabilities_of(there.scores, ProbabilityKind::kSoftmax), kTrained);
  const std::vector<double> by_confusion = shares_by_confusion(known.scores, known.labels, there.scores);
  CHECK(distance(kTrained, kThere) == Approx(1));
  CHECK(distance(by_likelihood, kThere) < 0.03);
  CHECK(distance(by_confusion, kThere) < 0.05);
  CHECK(tensor_of(by_likelihood).sum().item<double>() == Approx(1));
  CHECK(tensor_of(by_confusion).sum().item<double>() == Approx(1));
  // Without a shift both stay, and EM does whatever the sum of the given shares.
  const Drawn same = draw(20000, kTrained, 3);
  CHECK(distance(shares_by_likelihood(probabilities_of(same.scores, ProbabilityKind::kSoftmax), {4, 3, 2, 1}),
                 kTrained) < 0.03);
  CHECK(distance(shares_by_confusion(known.scores, known.labels, same.scores), kTrained) < 0.05);
}

TEST_CASE("the most likely shares, by hand") {
  // Two images of probabilities (0.9, 0.1) and (0.2, 0.8) at equal shares: the log-likelihood log(0.1 + 0.8 q) +
  // log(0.8 - 0.6 q) of a share q of the first class has its maximum at 0.58 / 0.96.
  const at::Tensor p = at::tensor({0.9, 0.1, 0.2, 0.8}, at::kDouble).view({2, 2});
  CHECK(shares_by_likelihood(p, {1, 1})[0] == Approx(0.58 / 0.96).epsilon(1e-5));
}

TEST_CASE("the shares by answers, by hand") {
  // Of class 0 two of two images are answered 0, of class 1 one of two; of four new images three are answered 0. With
  // C = [[1/2, 1/4], [0, 1/4]] and m = (3/4, 1/4), w = (1, 1): no shift.
  const at::Tensor scores = at::tensor({1., 0., 1., 0., 1., 0., 0., 1.}, at::kDouble).view({4, 2});
  const at::Tensor labels = at::tensor({0, 0, 1, 1}, at::kLong);
  CHECK(distance(shares_by_confusion(scores, labels, scores), {0.5, 0.5}) < 1e-12);
  // All new images are answered 0: w = (2, 0).
  CHECK(distance(shares_by_confusion(scores, labels, scores.narrow(0, 0, 3)), {1, 0}) < 1e-12);
  // All are answered 1: w = (-2, 4), of which the negative part goes.
  CHECK(distance(shares_by_confusion(scores, labels, scores.narrow(0, 3, 1)), {0, 1}) < 1e-12);
  // Nothing was ever answered so.
  CHECK(shares_by_confusion(scores.narrow(0, 0, 2), labels.narrow(0, 0, 2), scores.narrow(0, 3, 1)).empty());
}

}  // namespace settrain
