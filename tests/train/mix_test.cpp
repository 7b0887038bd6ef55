#include "src/train/mix.h"

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch2.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

using namespace test;

const at::Tensor kFour = at::tensor({7, 8, 9, 5}, at::kLong);

at::Tensor four_images() {
  return at::arange(4 * 3 * 6 * 8, at::kDouble).view({4, 3, 6, 8});
}

MixOptions options_of(MixOptions::Kind kind, double alpha) {
  return {kind, alpha, alpha};
}

TEST_CASE("mixup adds shares of an image and of the one before it") {
  const at::Tensor images = four_images();
  const MixedBatch mixed = mix(options_of(MixOptions::kMixup, 1), images, kFour, {3, 5});
  REQUIRE(mixed.share > 0.01);
  REQUIRE(mixed.share < 0.99);
  CHECK(mixed.partner_labels.equal(at::tensor({5, 7, 8, 9}, at::kLong)));
  const double s = mixed.share;
  CHECK(at::allclose(mixed.images[0], s * images[0] + (1 - s) * images[3]));
  CHECK(at::allclose(mixed.images[2], s * images[2] + (1 - s) * images[1]));
}

TEST_CASE("cutmix puts a rectangle of the partner in, and its share is that of the pixels") {
  const at::Tensor images = four_images();
  int64_t cut = 0;
  for (int64_t step = 0; step < 50; ++step) {
    const MixedBatch mixed = mix(options_of(MixOptions::kCutmix, 1), images, kFour, {3, step});
    const at::Tensor is_own = mixed.images.eq(images), is_partners = mixed.images.eq(at::roll(images, 1, 0));
    CHECK((is_own | is_partners).all().item<bool>());
    CHECK(mixed.share == Approx(is_own.to(at::kDouble).mean().item<double>()).epsilon(1e-12));
    // The cut part is a full rectangle: as many rows times columns as pixels.
    const at::Tensor pixels = is_partners[0][0];
    const int64_t rows = pixels.any(1).sum().item<int64_t>(), columns = pixels.any(0).sum().item<int64_t>();
    CHECK(pixels.sum().item<int64_t>() == rows * columns);
    cut += rows * columns > 0;
  }
  CHECK(cut > 30);
}

TEST_CASE("a mix is a function of seed, step and batch") {
  const auto images_of = [](const MixKey& key) {
    return mix(options_of(MixOptions::kEither, 1), four_images(), kFour, key).images;
  };
  CHECK(images_of({3, 5, 0}).equal(images_of({3, 5, 0})));
  CHECK_FALSE(images_of({3, 5, 0}).equal(images_of({4, 5, 0})));
  CHECK_FALSE(images_of({3, 5, 0}).equal(images_of({3, 6, 0})));
  CHECK_FALSE(images_of({3, 5, 0}).equal(images_of({3, 5, 1})));
}

TEST_CASE("shares have the moments of Beta(alpha, alpha)") {
  constexpr int64_t kDraws = 20000;
  for (const double alpha : {0.001, 0.05, 0.2, 1.0}) {
    double sum = 0, squares = 0;
    for (int64_t step = 0; step < kDraws; ++step) {
      const double share =
          mix(options_of(MixOptions::kMixup, alpha), at::zeros({1, 1, 1, 1}), at::zeros({1}), {9, step}).share;
      sum += share - 0.5;
      squares += (share - 0.5) * (share - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    // Four standard errors; a squared deviation is at most 1/4, so its own variance at most variance / 4.
    CHECK(std::abs(sum / kDraws) < 4 * std::sqrt(variance / kDraws));
    CHECK(std::abs(squares / kDraws - variance) < 4 * std::sqrt(variance / 4 / kDraws));
  }
}

TEST_CASE("either takes both, each about half the time") {
  int64_t cutmixes = 0;
  for (int64_t step = 0; step < 400; ++step) {
    const at::Tensor images = four_images();
    const MixedBatch mixed = mix(options_of(MixOptions::kEither, 1), images, kFour, {3, step});
    cutmixes += (mixed.images.eq(images) | mixed.images.eq(at::roll(images, 1, 0))).all().item<bool>();
  }
  CHECK(std::abs(cutmixes - 200) < 40);
}

TEST_CASE("the loss of mixed labels is the cross-entropy with their shares") {
  auto model = fresh_model();
  auto loss = make_loss("cross_entropy");
  const Batch batch = samples(0, 4);
  const MixedBatch mixed = mix(options_of(MixOptions::kMixup, 1), batch.images.to(at::kDouble), batch.labels, {3, 5});
  LossInput input;
  input.labels = batch.labels;
  input.output = model->forward(mixed.images);
  const at::Tensor shares =
      at::one_hot(batch.labels, 5) * mixed.share + at::one_hot(mixed.partner_labels, 5) * (1 - mixed.share);
  const at::Tensor expected = -(shares * at::log_softmax(input.output.scores, 1)).sum(1);
  const LossValue value = mixed_loss(*loss, input, mixed);
  CHECK(at::allclose(value.per_sample, expected));
  CHECK(value.sum.item<double>() == Approx(expected.sum().item<double>()));
  CHECK(value.count == 4);
}

TEST_CASE("class weights are of each of the two labels, and their sum is that of either") {
  const std::vector<std::string> weights{"loss.class_weights=list", "loss.class_weight_list=[0.5, 0.25, 1, 2, 4]",
                                         "loss.class_weight_mean=weights"};
  auto model = fresh_model();
  auto plain = make_loss("cross_entropy"), weighted = make_loss("cross_entropy", weights);
  const at::Tensor weight = at::tensor({0.5, 0.25, 1.0, 2.0, 4.0}, at::kDouble);
  const Batch batch = samples(0, 7);
  const MixedBatch mixed = mix(options_of(MixOptions::kMixup, 1), batch.images.to(at::kDouble), batch.labels, {3, 5});
  LossInput own, partners;
  own.output = partners.output = model->forward(mixed.images);
  own.labels = batch.labels;
  partners.labels = mixed.partner_labels;
  const at::Tensor expected =
      mixed.share * weight.index_select(0, own.labels) * (*plain)(own).per_sample +
      (1 - mixed.share) * weight.index_select(0, partners.labels) * (*plain)(partners).per_sample;
  CHECK(at::allclose(mixed_loss(*weighted, own, mixed).per_sample, expected));
  CHECK(weighted->divisor(mixed.partner_labels, 0) == Approx(weighted->divisor(batch.labels, 0)).epsilon(1e-14));
}

TEST_CASE("the accuracy of a step is of the label with the larger share") {
  int64_t of_partners = 0;
  for (int64_t step = 0; step < 12; ++step) {
    auto model = fresh_model();
    auto loss = make_loss("cross_entropy");
    const auto optimizer = make_optimizer(*model);
    const Batch batch = samples(0, 8);
    const MixOptions options = options_of(MixOptions::kMixup, 1);
    const MixedBatch mixed = mix(options, batch.images, batch.labels, {1, step});
    const at::Tensor labels = mixed.share < 0.5 ? mixed.partner_labels : batch.labels;
    of_partners += mixed.share < 0.5;
    const int64_t expected = model->forward(mixed.images).scores.argmax(1).eq(labels).sum().item<int64_t>();
    OneStep settings{1, step, 0.1, 0};
    settings.mix = options;
    CHECK(train_step(*model, *loss, *optimizer, {batch}, ComputePolicy{}, settings).correct == expected);
  }
  CHECK(of_partners > 0);
  CHECK(of_partners < 12);
}

TEST_CASE("the batches of a step are mixed by their numbers") {
  // The same batch twice: the mean of two losses, which differ by their mixes alone.
  auto model = fresh_model();
  auto loss = make_loss("cross_entropy");
  const Batch batch = samples(0, 6);
  const MixOptions options = options_of(MixOptions::kMixup, 1);
  double expected = 0;
  for (int64_t number = 0; number < 2; ++number) {
    const MixedBatch mixed = mix(options, batch.images, batch.labels, {1, 0, number});
    LossInput input;
    input.labels = batch.labels;
    input.output = model->forward(mixed.images);
    expected += mixed_loss(*loss, input, mixed).sum.item<double>();
  }
  const auto optimizer = make_optimizer(*model);
  OneStep settings{1, 0, 0.1, 0};
  settings.mix = options;
  const StepResult twice = train_step(*model, *loss, *optimizer, {batch, batch}, ComputePolicy{}, settings);
  CHECK(twice.loss_sum == Approx(expected).epsilon(1e-6));
}

TEST_CASE("a step mixes each of its batches") {
  const auto weight_after = [](const MixOptions& options) {
    auto model = fresh_model();
    auto loss = make_loss("cross_entropy");
    const auto optimizer = make_optimizer(*model);
    OneStep settings{1, 0, 0.1, 0};
    settings.mix = options;
    train_step(*model, *loss, *optimizer, {samples(0, 5), samples(5, 3)}, ComputePolicy{}, settings);
    return model->parameters()[0].detach();
  };
  CHECK(weight_after(options_of(MixOptions::kMixup, 1)).equal(weight_after(options_of(MixOptions::kMixup, 1))));
  CHECK_FALSE(weight_after(options_of(MixOptions::kMixup, 1)).equal(weight_after(options_of(MixOptions::kNone, 1))));
}

}  // namespace
}  // namespace settrain
