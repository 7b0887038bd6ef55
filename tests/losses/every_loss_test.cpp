#include <ATen/ATen.h>

#include <limits>

#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::build_loss;
using test::context_of;

constexpr int64_t kEveryBatch = 6, kEveryClasses = 12;

at::Tensor some_scores() {
  at::manual_seed(3);
  return at::randn({kEveryBatch, kEveryClasses}, at::kDouble);
}

at::Tensor some_labels() {
  return at::arange(kEveryBatch, at::kLong) * 2;
}

// With scores of a second head, for the losses that need them.
LossInput checked_input(const at::Tensor& scores, const at::Tensor& labels) {
  LossInput input = test::input_of(scores, labels);
  input.output.scores_multi = at::arange(scores.numel(), scores.options()).remainder(7).view(scores.sizes());
  return input;
}

at::Tensor gradient_at(Loss& loss, const at::Tensor& scores) {
  return test::gradient_of([&](const at::Tensor& s) { return loss(checked_input(s, some_labels())).sum; }, scores);
}

bool has_key(const LossEntry& entry, const std::string& name) {
  return std::any_of(entry.keys.begin(), entry.keys.end(), [&](const config::Key& key) { return key.name == name; });
}

TEST_CASE("Every loss: sum, mean and count agree with the losses of the samples") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    CAPTURE(entry.name);
    const auto loss = build_loss(entry.name, context_of(kEveryClasses));
    const LossValue value = (*loss)(checked_input(some_scores(), some_labels()));
    CHECK(value.per_sample.sizes() == at::IntArrayRef({kEveryBatch}));
    CHECK(value.count == kEveryBatch);
    CHECK(test::near(value.sum, value.per_sample.sum()));
    CHECK(test::near(value.mean(), value.per_sample.mean()));
    CHECK(value.per_sample.ge(0).all().item<bool>());
    CHECK(loss->score_scale() > 0);
  }
}

TEST_CASE("Every loss: the gradient is that of central differences") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (entry.name == "role") continue;  // by its definition it is not; role_test.cpp holds its targets fixed
    CAPTURE(entry.name);
    const auto loss = build_loss(entry.name, context_of(kEveryClasses));
    const auto sum = [&](const at::Tensor& s) { return (*loss)(checked_input(s, some_labels())).sum; };
    CHECK(test::gradient_error(sum, some_scores(), 1e-5) < 1e-9 * loss->score_scale());
    const bool trains = entry.name != "topk_zero_one";
    CHECK((gradient_at(*loss, some_scores()).abs().max().item<double>() > 0.02) == trains);
  }
}

TEST_CASE("Every loss: the gradient of a sample sums to zero, and a shift of its scores changes nothing") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (!test::is_relative(entry.name)) continue;
    CAPTURE(entry.name);
    const auto loss = build_loss(entry.name, context_of(kEveryClasses));
    const double rounding = entry.name.starts_with("exact") ? 1e-9 : 1e-12;  // a quadrature of 32 nodes
    CHECK(gradient_at(*loss, some_scores()).sum(1).abs().max().item<double>() < rounding * loss->score_scale());
    const at::Tensor shift = at::arange(kEveryBatch, at::kDouble).unsqueeze(1) - 2;
    CHECK(test::near((*loss)(checked_input(some_scores() + shift, some_labels())).per_sample,
                     (*loss)(checked_input(some_scores(), some_labels())).per_sample));
  }
}

TEST_CASE("Every loss: finite at scores of 10,000, at ties and for the largest k") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    for (const std::string& k : {std::string(), "k=" + std::to_string(kEveryClasses - 1)}) {
      if (!k.empty() && !has_key(entry, "k")) continue;
      CAPTURE(entry.name, k);
      const auto loss =
          build_loss(entry.name, context_of(kEveryClasses), k.empty() ? std::vector<std::string>{} : std::vector{k});
      for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
        for (const at::Tensor& scores : {some_scores() * 1e4, at::full({kEveryBatch, kEveryClasses}, -1e4),
                                         at::zeros({kEveryBatch, kEveryClasses})}) {
          CHECK(at::isfinite(gradient_at(*loss, scores.to(dtype))).all().item<bool>());
          CHECK(at::isfinite((*loss)(checked_input(scores.to(dtype), some_labels())).per_sample).all().item<bool>());
        }
      }
    }
  }
}

TEST_CASE("Every loss: half-precision scores give the float32 loss of the same numbers") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
      CAPTURE(entry.name, at::toString(dtype));
      const auto loss = build_loss(entry.name, context_of(kEveryClasses));
      const at::Tensor scores = some_scores().to(dtype);
      const LossValue value = (*loss)(checked_input(scores, some_labels()));
      CHECK(value.per_sample.scalar_type() == at::kFloat);
      CHECK(at::equal(value.per_sample, (*loss)(checked_input(scores.to(at::kFloat), some_labels())).per_sample));
      CHECK(gradient_at(*loss, scores).scalar_type() == dtype);
    }
  }
}

TEST_CASE("Every loss: the same input and noise key give the same bits") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    CAPTURE(entry.name);
    const auto first = build_loss(entry.name, context_of(kEveryClasses)),
               second = build_loss(entry.name, context_of(kEveryClasses));
    const LossInput input = checked_input(some_scores(), some_labels());
    CHECK(at::equal((*first)(input).per_sample, (*second)(input).per_sample));
    CHECK(at::equal((*first)(input).per_sample, (*first)(input).per_sample));
  }
}

TEST_CASE("Every loss: two half batches, by their positions, are one batch") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (entry.couples_samples) continue;
    CAPTURE(entry.name);
    const auto loss = build_loss(entry.name, context_of(kEveryClasses));
    const at::Tensor scores = some_scores(), labels = some_labels();
    LossInput second_half = checked_input(scores.slice(0, 4), labels.slice(0, 4));
    second_half.noise_key.first_position = 4;
    const at::Tensor halves = at::cat({(*loss)(checked_input(scores.slice(0, 0, 4), labels.slice(0, 0, 4))).per_sample,
                                       (*loss)(second_half).per_sample});
    CHECK(at::equal(halves, (*loss)(checked_input(scores, labels)).per_sample));
  }
}

TEST_CASE("Every loss of probabilities: with shares of labels it is the mean of the labels' losses by them") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (!entry.takes_mixed_labels) continue;
    for (const bool weighted : {false, true}) {
      CAPTURE(entry.name, weighted);
      std::vector<std::string> settings;
      if (weighted) settings.push_back("class_weights=inverse_frequency");
      const auto loss = build_loss(entry.name, context_of(kEveryClasses), settings);
      const at::Tensor others = some_labels().flip(0);
      const at::Tensor share = at::linspace(0, 1, kEveryBatch, at::kDouble), column = share.unsqueeze(1);
      const auto one_hot = [](const at::Tensor& labels) { return at::one_hot(labels, kEveryClasses).to(at::kDouble); };
      const at::Tensor shares = column * one_hot(some_labels()) + (1 - column) * one_hot(others);
      const auto mixed = [&](const at::Tensor& s) {
        LossInput input = checked_input(s, some_labels());
        input.label_shares = shares;
        return (*loss)(input).per_sample;
      };
      const auto mean = [&](const at::Tensor& s) {
        return share * (*loss)(checked_input(s, some_labels())).per_sample +
               (1 - share) * (*loss)(checked_input(s, others)).per_sample;
      };
      at::Tensor masked = some_scores();
      masked.select(1, 1).fill_(-std::numeric_limits<double>::infinity());  // no label
      for (const at::Tensor& scores : {some_scores(), some_scores() * 1e4, masked}) {
        CHECK(test::near(mixed(scores), mean(scores)));
        CHECK(test::near(test::gradient_of([&](const at::Tensor& s) { return mixed(s).sum(); }, scores),
                         test::gradient_of([&](const at::Tensor& s) { return mean(s).sum(); }, scores)));
      }
    }
  }
}

TEST_CASE("Shares of labels that are no probabilities, or of another loss, are refused") {
  const auto call = [](const char* name, const at::Tensor& shares) {
    LossInput input = checked_input(some_scores(), some_labels());
    input.label_shares = shares;
    (*build_loss(name, context_of(kEveryClasses)))(input);
  };
  const at::Tensor even = at::full({kEveryBatch, kEveryClasses}, 1.0 / kEveryClasses);
  CHECK_NOTHROW(call("cross_entropy", even));
  for (const at::Tensor& wrong : {even * 2, even - 1, even.slice(1, 1), even.slice(0, 1), even.to(at::kLong)}) {
    CHECK_THROWS_AS(call("cross_entropy", wrong), ShapeError);
  }
  CHECK_THROWS_AS(call("topk_hinge", even), ShapeError);
}

TEST_CASE("Every loss that counts classes: with one without images, losses and gradients of the others are finite") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    if (!entry.requirements.class_counts) continue;
    CAPTURE(entry.name);
    std::vector<int64_t> counts(kEveryClasses, 3);
    counts[1] = 0;  // no label
    const auto loss = build_loss(entry.name, test::context_of_counts(counts));
    CHECK(at::isfinite((*loss)(checked_input(some_scores(), some_labels())).per_sample).all().item<bool>());
    CHECK(at::isfinite(gradient_at(*loss, some_scores())).all().item<bool>());
  }
}

TEST_CASE("Every loss has a formula, and says whether its samples are coupled") {
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    CAPTURE(entry.name);
    CHECK_FALSE(entry.formula.empty());
    // The largest k and weights that count, or the coupling would not show.
    std::vector<std::string> settings;
    if (has_key(entry, "lambda")) settings.push_back("lambda=1");
    const auto loss = build_loss(entry.name, context_of(kEveryClasses), settings);
    LossInput input = checked_input(some_scores(), some_labels());
    const at::Tensor before = (*loss)(input).per_sample;
    input.output.scores = input.output.scores.clone();
    input.output.scores[0] = input.output.scores[0].flip(0) * 3;
    const at::Tensor others = (*loss)(input).per_sample.slice(0, 1);
    CHECK(at::equal(others, before.slice(0, 1)) != entry.couples_samples);
  }
}

}  // namespace
}  // namespace settrain
