#include "src/loader/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "src/config/config.h"
#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr const char* kAugmentKey = "data.augment";
constexpr int64_t kMostOperations = 16, kBins = 31, kAutoBins = 10;

// In [0, 1), a multiple of 2^-32.
double unit(uint32_t word) {
  return word * 0x1p-32;
}

double between(double least, double most, uint32_t word) {
  return least + (most - least) * unit(word);
}

// Element `i` of torch.linspace(start, end, bins), in float32: each half counts from its own end.
double bin_of(double start, double end, int64_t bins, int64_t i) {
  const auto first = static_cast<float>(start), last = static_cast<float>(end);
  const float step = (last - first) / static_cast<float>(bins - 1);
  return i < bins / 2 ? first + step * static_cast<float>(i) : last - step * static_cast<float>(bins - 1 - i);
}

// The largest magnitudes of a space of operations.
struct Magnitudes {
  double shear, degrees, factor;
  std::optional<double> pixels;  // of a translation; nothing: 150/331 of the side
  int posterized_bits;           // which the last bin takes away
};
constexpr Magnitudes kUsual{0.3, 30, 0.9, std::nullopt, 4}, kWide{0.99, 135, 0.99, 32, 6};

// RandAugment's and TrivialAugment's operations, in torchvision's order.
constexpr std::array kSpace{OperationKind::kIdentity,     OperationKind::kShearX,     OperationKind::kShearY,
                            OperationKind::kTranslateX,   OperationKind::kTranslateY, OperationKind::kRotate,
                            OperationKind::kBrightness,   OperationKind::kColour,     OperationKind::kContrast,
                            OperationKind::kSharpness,    OperationKind::kPosterize,  OperationKind::kSolarize,
                            OperationKind::kAutocontrast, OperationKind::kEqualize};

// The operation with the magnitude of bin `i` of `bins`, against its usual direction where it has one.
ImageOperation operation_of(OperationKind kind, const Magnitudes& most, int64_t bins, int64_t i, bool is_negative,
                            int64_t height, int64_t width) {
  using enum OperationKind;
  const auto signed_bin = [&](double end) { return (is_negative ? -1 : 1) * bin_of(0, end, bins, i); };
  const auto translation = [&](int64_t side) {
    return std::trunc(signed_bin(most.pixels.value_or(150.0 / 331.0 * static_cast<double>(side))));
  };
  switch (kind) {
    case kShearX:
    case kShearY:
      return {kind, signed_bin(most.shear)};
    case kTranslateX:
      return {kind, translation(width)};
    case kTranslateY:
      return {kind, translation(height)};
    case kRotate:
      return {kind, signed_bin(most.degrees)};
    case kBrightness:
    case kColour:
    case kContrast:
    case kSharpness:
      return {kind, 1 + signed_bin(most.factor)};
    case kPosterize: {
      const float bins_a_bit = static_cast<float>(bins - 1) / static_cast<float>(most.posterized_bits);
      return {kind, 8 - std::nearbyint(static_cast<float>(i) / bins_a_bit)};  // halves to the even number
    }
    case kSolarize:
      return {kind, bin_of(255, 0, bins, i)};
    default:
      return {kind};
  }
}

// An operation of a policy of AutoAugment: how likely it is, and its bin of ten.
struct Chance {
  OperationKind kind;
  double probability;
  int64_t bin = 0;
};
using SubPolicy = std::array<Chance, 2>;
constexpr size_t kSubPolicies = 25;
using AutoPolicy = std::array<SubPolicy, kSubPolicies>;

// The policies of Cubuk et al. (CVPR 2019), in torchvision's order.
const AutoPolicy& auto_imagenet() {
  using enum OperationKind;
  static const AutoPolicy policy{{
      {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}}, {{{kSolarize, 0.6, 5}, {kAutocontrast, 0.6}}},
      {{{kEqualize, 0.8}, {kEqualize, 0.6}}},      {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
      {{{kEqualize, 0.4}, {kSolarize, 0.2, 4}}},   {{{kEqualize, 0.4}, {kRotate, 0.8, 8}}},
      {{{kSolarize, 0.6, 3}, {kEqualize, 0.6}}},   {{{kPosterize, 0.8, 5}, {kEqualize, 1.0}}},
      {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},  {{{kEqualize, 0.6}, {kPosterize, 0.4, 6}}},
      {{{kRotate, 0.8, 8}, {kColour, 0.4, 0}}},    {{{kRotate, 0.4, 9}, {kEqualize, 0.6}}},
      {{{kEqualize, 0.0}, {kEqualize, 0.8}}},      {{{kInvert, 0.6}, {kEqualize, 1.0}}},
      {{{kColour, 0.6, 4}, {kContrast, 1.0, 8}}},  {{{kRotate, 0.8, 8}, {kColour, 1.0, 2}}},
      {{{kColour, 0.8, 8}, {kSolarize, 0.8, 7}}},  {{{kSharpness, 0.4, 7}, {kInvert, 0.6}}},
      {{{kShearX, 0.6, 5}, {kEqualize, 1.0}}},     {{{kColour, 0.4, 0}, {kEqualize, 0.6}}},
      {{{kEqualize, 0.4}, {kSolarize, 0.2, 4}}},   {{{kSolarize, 0.6, 5}, {kAutocontrast, 0.6}}},
      {{{kInvert, 0.6}, {kEqualize, 1.0}}},        {{{kColour, 0.6, 4}, {kContrast, 1.0, 8}}},
      {{{kEqualize, 0.8}, {kEqualize, 0.6}}},
  }};
  return policy;
}

const AutoPolicy& auto_cifar() {
  using enum OperationKind;
  static const AutoPolicy policy{{
      {{{kInvert, 0.1}, {kContrast, 0.2, 6}}},         {{{kRotate, 0.7, 2}, {kTranslateX, 0.3, 9}}},
      {{{kSharpness, 0.8, 1}, {kSharpness, 0.9, 3}}},  {{{kShearY, 0.5, 8}, {kTranslateY, 0.7, 9}}},
      {{{kAutocontrast, 0.5}, {kEqualize, 0.9}}},      {{{kShearY, 0.2, 7}, {kPosterize, 0.3, 7}}},
      {{{kColour, 0.4, 3}, {kBrightness, 0.6, 7}}},    {{{kSharpness, 0.3, 9}, {kBrightness, 0.7, 9}}},
      {{{kEqualize, 0.6}, {kEqualize, 0.5}}},          {{{kContrast, 0.6, 7}, {kSharpness, 0.6, 5}}},
      {{{kColour, 0.7, 7}, {kTranslateX, 0.5, 8}}},    {{{kEqualize, 0.3}, {kAutocontrast, 0.4}}},
      {{{kTranslateY, 0.4, 3}, {kSharpness, 0.2, 6}}}, {{{kBrightness, 0.9, 6}, {kColour, 0.2, 8}}},
      {{{kSolarize, 0.5, 2}, {kInvert, 0.0}}},         {{{kEqualize, 0.2}, {kAutocontrast, 0.6}}},
      {{{kEqualize, 0.2}, {kEqualize, 0.6}}},          {{{kColour, 0.9, 9}, {kEqualize, 0.6}}},
      {{{kAutocontrast, 0.8}, {kSolarize, 0.2, 8}}},   {{{kBrightness, 0.1, 3}, {kColour, 0.7, 0}}},
      {{{kSolarize, 0.4, 5}, {kAutocontrast, 0.9}}},   {{{kTranslateY, 0.9, 9}, {kTranslateY, 0.7, 9}}},
      {{{kAutocontrast, 0.9}, {kSolarize, 0.8, 3}}},   {{{kEqualize, 0.8}, {kInvert, 0.1}}},
      {{{kTranslateY, 0.7, 9}, {kAutocontrast, 0.9}}},
  }};
  return policy;
}

using Operations = std::vector<ImageOperation>;

void draw_auto(const AutoPolicy& policy, int64_t height, int64_t width, const AugmentationKey& key, Operations& out) {
  const auto random = random_words(key, kPolicyBlock);
  const SubPolicy& chosen = policy[uniform_below(random[0], kSubPolicies)];
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (unit(random[1 + i]) >= chosen[i].probability) continue;
    const bool is_negative = ((random[3] >> i) & 1) == 0;
    out.push_back(operation_of(chosen[i].kind, kUsual, kAutoBins, chosen[i].bin, is_negative, height, width));
  }
}

// ColorJitter: a drawn order of the four, each with an amount of its own.
void draw_jitter(const AugmentationOptions& options, const AugmentationKey& key, Operations& out) {
  const auto random = random_words(key, kJitterBlock);
  const auto factor = [&](double most, uint32_t word) { return between(std::max(0.0, 1 - most), 1 + most, word); };
  const std::array<std::pair<double, ImageOperation>, 4> all{
      {{options.brightness, {OperationKind::kBrightness, factor(options.brightness, random[0])}},
       {options.contrast, {OperationKind::kContrast, factor(options.contrast, random[1])}},
       {options.saturation, {OperationKind::kColour, factor(options.saturation, random[2])}},
       {options.hue, {OperationKind::kHue, between(-options.hue, options.hue, random[3])}}}};
  std::array<size_t, 4> order{0, 1, 2, 3};
  uint32_t number = uniform_below(random_words(key, kJitterOrderBlock)[0], 24);  // of the orders
  for (uint32_t left = 4; left > 1; number /= left--) std::swap(order[left - 1], order[number % left]);
  for (const size_t i : order) {
    if (all[i].first > 0) out.push_back(all[i].second);
  }
}

// RandomErasing, with torchvision's shares of the area and proportions; nothing where ten draws do not fit.
std::optional<Box> erased_box(int64_t height, int64_t width, const AugmentationKey& key) {
  constexpr double kLeastArea = 0.02, kMostArea = 0.33, kLeastRatio = 0.3, kMostRatio = 3.3;
  constexpr uint32_t kAttempts = 10;
  for (uint32_t attempt = 1; attempt <= kAttempts; ++attempt) {
    const auto random = random_words(key, kEraseBlock + attempt);
    const double area = static_cast<double>(height * width) * between(kLeastArea, kMostArea, random[0]);
    const double ratio = std::exp(between(std::log(kLeastRatio), std::log(kMostRatio), random[1]));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(area * ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(area / ratio)));
    if (h < 1 || w < 1 || h >= height || w >= width) continue;
    return Box{uniform_below(random[2], static_cast<uint32_t>(height - h + 1)),
               uniform_below(random[3], static_cast<uint32_t>(width - w + 1)), h, w};
  }
  return std::nullopt;
}

// A square around a drawn pixel, cut at the border.
Box cutout_box(int64_t size, int64_t height, int64_t width, const AugmentationKey& key) {
  const auto random = random_words(key, kCutoutBlock);
  const auto side = [size](uint32_t word, int64_t length) {
    const int64_t begin = uniform_below(word, static_cast<uint32_t>(length)) - size / 2;
    const int64_t first = std::max<int64_t>(begin, 0);
    return std::pair{first, std::min(begin + size, length) - first};
  };
  const auto [top, rows] = side(random[0], height);
  const auto [left, columns] = side(random[1], width);
  return {top, left, rows, columns};
}

}  // namespace

config::Keys AugmentationOptions::keys() {
  using config::key;
  using O = AugmentationOptions;
  return {
      key("augment", &O::augment, "none",
          "Strong augmentation of training images after the crop and the flip, to the bytes of torchvision's on Pillow "
          "images, with the nearest pixel and black beyond the image: none; trivial (TrivialAugmentWide, Müller and "
          "Hutter 2021); rand(n, m) (RandAugment, Cubuk et al. 2020), n operations of magnitude m, 0 to 30, such as "
          "rand(2, 9); auto_imagenet or auto_cifar (AutoAugment's policies, Cubuk et al. 2019).")
          .not_empty(),
      key("augmentation.rotate", &O::rotate, 0.0,
          "Rotation of training images about their centre by a uniform angle up to this, either way.")
          .at_least(0)
          .at_most(180)
          .in("degrees"),
      key("augmentation.brightness", &O::brightness, 0.0,
          "Training images' brightness is multiplied by a uniform factor between 1 minus this, at least 0, and 1 plus "
          "this. The changes of brightness, contrast, saturation and hue come in a random order (torchvision's "
          "ColorJitter).")
          .at_least(0)
          .at_most(10),
      key("augmentation.contrast", &O::contrast, 0.0, "The same for contrast.").at_least(0).at_most(10),
      key("augmentation.saturation", &O::saturation, 0.0, "The same for saturation.").at_least(0).at_most(10),
      key("augmentation.hue", &O::hue, 0.0, "Training images' hue is turned by a uniform share up to this, either way.")
          .at_least(0)
          .at_most(0.5)
          .in("turns"),
      key("augmentation.erase", &O::erase, 0.0,
          "Probability that a rectangle of 2 to 33 % of a training image's area, with height / width between 0.3 and "
          "3.3, is erased (random erasing, Zhong et al. 2020; torchvision's).")
          .at_least(0)
          .at_most(1),
      key("augmentation.cutout", &O::cutout, int64_t{0},
          "Side of a square that is erased from every training image around a random pixel, and cut at the border "
          "(Cutout, DeVries and Taylor 2017); 0: none.")
          .at_least(0)
          .at_most(4096)
          .in("pixels"),
      key("augmentation.erase_fill", &O::erase_fill, EraseFill::kMean,
          "Colour of erased pixels: mean, the nearest to the mean of data.normalisation, which becomes about 0; or "
          "black.",
          {{"mean", EraseFill::kMean}, {"black", EraseFill::kBlack}}),
  };
}

void augmentation_rule(const config::Config& config) {
  const auto options = config.read<AugmentationOptions>("data");
  try {
    const Augmentation checked(options);
  } catch (const KeyError& error) {
    config.fail(error.path(), error.message());
  }
  config.refuse_unread("data.augmentation.erase_fill", options.erase > 0 || options.cutout > 0,
                       "data.augmentation.erase or cutout above 0");
}

Augmentation::ParsedPolicy Augmentation::parsed(const std::string& text) {
  static const std::vector<std::pair<std::string, Policy>> kWords{{"none", Policy::kNone},
                                                                  {"trivial", Policy::kTrivial},
                                                                  {"auto_imagenet", Policy::kAutoImagenet},
                                                                  {"auto_cifar", Policy::kAutoCifar}};
  for (const auto& [word, policy] : kWords) {
    if (text == word) return {policy};
  }
  const std::string expected =
      fmt::format("rand(n, m) with 1 to {} operations and a magnitude of 0 to {}", kMostOperations, kBins - 1);
  if (!text.starts_with("rand")) {
    static const std::vector<std::string> kNames{"none", "trivial", "rand", "auto_imagenet", "auto_cifar"};
    throw KeyError(kAugmentKey, fmt::format("{} is none of none, trivial, rand(n, m), auto_imagenet, auto_cifar{}",
                                            in_quotes(text), did_you_mean(text, kNames)));
  }
  std::string inside = text.substr(4);
  std::erase(inside, ' ');
  const size_t comma = inside.find(',');
  if (inside.starts_with('(') && inside.ends_with(')') && comma != std::string::npos) {
    const auto operations = parse_number<int64_t>(std::string_view(inside).substr(1, comma - 1));
    const auto magnitude = parse_number<int64_t>(std::string_view(inside).substr(comma + 1, inside.size() - comma - 2));
    if (operations && magnitude && *operations >= 1 && *operations <= kMostOperations && *magnitude >= 0 &&
        *magnitude < kBins)
      return {Policy::kRand, *operations, *magnitude};
  }
  throw KeyError(kAugmentKey, fmt::format("{}: expected {}", in_quotes(text), expected));
}

Augmentation::Augmentation(const AugmentationOptions& options) : options_(options), policy_(parsed(options.augment)) {}

bool Augmentation::is_on() const {
  const AugmentationOptions& o = options_;
  return policy_.policy != Policy::kNone || o.rotate > 0 || o.brightness > 0 || o.contrast > 0 || o.saturation > 0 ||
         o.hue > 0 || o.erase > 0 || o.cutout > 0;
}

void Augmentation::refuse_colours() const {
  const auto refuse = [](const char* key, double value) {
    if (value > 0) throw KeyError(key, "the images are grey and have no colours to change; expected 0");
  };
  refuse("data.augmentation.saturation", options_.saturation);
  refuse("data.augmentation.hue", options_.hue);
}

PixelChanges Augmentation::draw(int64_t height, int64_t width, const AugmentationKey& key) const {
  PixelChanges changes;
  Operations& operations = changes.operations;
  const auto draw_of_space = [&](const Magnitudes& most, uint32_t block, std::optional<int64_t> bin) {
    const auto random = random_words(key, block);
    const OperationKind kind = kSpace[uniform_below(random[0], kSpace.size())];
    operations.push_back(operation_of(kind, most, kBins, bin ? *bin : uniform_below(random[2], kBins),
                                      uniform_below(random[1], 2) == 1, height, width));
  };
  switch (policy_.policy) {
    case Policy::kNone:
      break;
    case Policy::kTrivial:
      draw_of_space(kWide, kPolicyBlock, std::nullopt);
      break;
    case Policy::kRand:
      for (int64_t i = 0; i < policy_.operations; ++i)
        draw_of_space(kUsual, kPolicyBlock + static_cast<uint32_t>(i), policy_.magnitude);
      break;
    case Policy::kAutoImagenet:
      draw_auto(auto_imagenet(), height, width, key, operations);
      break;
    case Policy::kAutoCifar:
      draw_auto(auto_cifar(), height, width, key, operations);
      break;
  }
  std::erase_if(operations, [](const ImageOperation& o) { return o.kind == OperationKind::kIdentity; });
  if (options_.rotate > 0) {
    const double angle = between(-options_.rotate, options_.rotate, random_words(key, kRotateBlock)[0]);
    operations.push_back({OperationKind::kRotate, angle});
  }
  draw_jitter(options_, key, operations);
  if (options_.erase > 0 && unit(random_words(key, kEraseBlock)[0]) < options_.erase) {
    if (const auto box = erased_box(height, width, key)) changes.erased.push_back(*box);
  }
  if (options_.cutout > 0) changes.erased.push_back(cutout_box(options_.cutout, height, width, key));
  return changes;
}

}  // namespace settrain
