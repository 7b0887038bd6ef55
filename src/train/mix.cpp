#include "src/train/mix.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/roll.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "losses/make_loss.h"
#include "src/core/random.h"

namespace settrain {
namespace {

// The uses of the random words of a mix: the block of their counter.
enum Block : uint32_t { kShare, kWhich, kPlace };

// Two numbers in [0, 1).
std::pair<double, double> two_uniform(const MixKey& key, Block block, uint32_t item = 0) {
  const auto words = random_words(key.seed, Stream::kMix, item, block, static_cast<uint32_t>(key.batch),
                                  static_cast<uint32_t>(key.step));
  return {unit_double(words[0], words[1]), unit_double(words[2], words[3])};
}

// A draw of Beta(alpha, alpha), alpha <= 1: Joehnk's rejection (1964), in logarithms since u^(1/alpha) may underflow.
// With an alpha far below the range of the keys the logarithms overflow too, and no draw would be accepted.
double beta_draw(double alpha, const MixKey& key) {
  for (uint32_t attempt = 0;; ++attempt) {
    const auto [u, v] = two_uniform(key, kShare, attempt);
    if (u == 0 || v == 0) continue;
    const double x = std::log(u) / alpha, y = std::log(v) / alpha, larger = std::max(x, y);
    const double log_sum = larger + std::log1p(std::exp(std::min(x, y) - larger));
    if (log_sum <= 0) return std::exp(x - log_sum);
  }
}

// Pixels from `first` to before `last` of `size`.
struct Range {
  int64_t first, last;
};

Range around(double centre, double length, int64_t size) {
  const auto middle = static_cast<int64_t>(centre * static_cast<double>(size));
  const auto half = static_cast<int64_t>(0.5 * length * static_cast<double>(size));
  return {std::max<int64_t>(0, middle - half), std::min(size, middle + half)};
}

void cut_in(const at::Tensor& partners, const MixKey& key, MixedBatch& mixed) {
  const auto [y, x] = two_uniform(key, kPlace);
  const double side = std::sqrt(1 - mixed.share);
  const int64_t height = mixed.images.size(2), width = mixed.images.size(3);
  const Range rows = around(y, side, height), columns = around(x, side, width);
  mixed.images = mixed.images.clone();
  const auto box = [&](const at::Tensor& images) {
    return images.slice(2, rows.first, rows.last).slice(3, columns.first, columns.last);
  };
  box(mixed.images).copy_(box(partners));
  const auto area = static_cast<double>((rows.last - rows.first) * (columns.last - columns.first));
  mixed.share = 1 - area / static_cast<double>(height * width);
}

}  // namespace

config::Keys MixOptions::keys() {
  using config::key;
  return {
      key("mix", &MixOptions::kind, kNone,
          "Mixes pairs of training images and their labels: none; mixup (Zhang et al., ICLR 2018); cutmix (Yun et al., "
          "ICCV 2019); or either, one of the two for each batch. For losses of class probabilities.",
          {{"none", kNone}, {"mixup", kMixup}, {"cutmix", kCutmix}, {"either", kEither}}),
      key("mixup_alpha", &MixOptions::mixup_alpha, 0.2, "The share of an image is drawn from Beta(alpha, alpha).")
          .at_least(0.001)
          .at_most(1),
      key("cutmix_alpha", &MixOptions::cutmix_alpha, 1.0, "The same for cutmix.").at_least(0.001).at_most(1)};
}

config::Rule mix_rule(const LossRegistry& losses) {
  return [&losses](const config::Config& config) {
    const auto& name = config.get<std::string>("loss.name");
    const auto options = config.read<MixOptions>("train");
    config.refuse_unread("train.mixup_alpha", options.is_on() && options.kind != MixOptions::kCutmix,
                         "train.mix: mixup or either");
    config.refuse_unread("train.cutmix_alpha", options.is_on() && options.kind != MixOptions::kMixup,
                         "train.mix: cutmix or either");
    if (options.is_on() && config.get<int64_t>("data.batch_size") == 1) {
      config.fail("train.mix", "mixes the images of a batch, and data.batch_size is 1");
    }
    if (!options.is_on() || losses.at(name).takes_mixed_labels) return;
    config.fail("train.mix", fmt::format("mixes two labels in shares, which are probabilities, and the loss {} has no "
                                         "use for those; set train.mix: none, or one of the losses {}",
                                         name, fmt::join(losses_with(losses, &LossEntry::takes_mixed_labels), ", ")));
  };
}

MixedBatch mix(const MixOptions& options, const at::Tensor& images, const at::Tensor& labels, const MixKey& key) {
  if (!options.is_on()) return {images, {}, 1};
  const bool coin = two_uniform(key, kWhich).first < 0.5;
  const bool is_cutmix = options.kind == MixOptions::kCutmix || (options.kind == MixOptions::kEither && coin);
  const at::Tensor partners = at::roll(images, 1, 0);
  MixedBatch mixed{images, at::roll(labels, 1, 0),
                   beta_draw(is_cutmix ? options.cutmix_alpha : options.mixup_alpha, key)};
  if (is_cutmix) {
    cut_in(partners, key, mixed);
  } else {
    mixed.images = images * mixed.share + partners * (1 - mixed.share);
  }
  return mixed;
}

LossValue mixed_loss(Loss& loss, const LossInput& input, const MixedBatch& mixed) {
  const LossValue own = loss(input);
  if (!mixed.partner_labels.defined()) return own;
  LossInput of_partners = input;
  of_partners.labels = mixed.partner_labels;
  const LossValue partners = loss(of_partners);
  return {own.per_sample * mixed.share + partners.per_sample * (1 - mixed.share),
          own.sum * mixed.share + partners.sum * (1 - mixed.share), own.count};
}

}  // namespace settrain
