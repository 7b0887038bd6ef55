// Strong augmentation: what is done to the pixels of a training view after the crop and the flip, drawn at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/decoding/image.h"
#include "src/config/key.h"
#include "src/config/schema.h"
#include "src/loader/image_operation.h"
#include "src/loader/view.h"

namespace settrain {

/// The colour of erased pixels.
enum class EraseFill {
  kMean,  // that of data.normalisation, to the nearest byte, which a network sees as about 0
  kBlack,
};

struct AugmentationOptions {
  std::string augment = "none";
  double rotate = 0, brightness = 0, contrast = 0, saturation = 0, hue = 0, erase = 0;
  int64_t cutout = 0;
  EraseFill erase_fill = EraseFill::kMean;

  static config::Keys keys();
};

/// Refuses a data.augment that is none of its words, at its place, and keys that nothing reads.
void augmentation_rule(const config::Config& config);

/// The changes of one view, in their order.
struct PixelChanges {
  std::vector<ImageOperation> operations{};  // no identities
  std::vector<Box> erased{};                 // within the view

  bool empty() const { return operations.empty() && erased.empty(); }
};

/// The policies are those of torchvision: TrivialAugmentWide (Müller and Hutter, ICCV 2021), RandAugment (Cubuk et al.,
/// 2020) and AutoAugment (Cubuk et al., CVPR 2019) for ImageNet and CIFAR-10, with their operations, magnitudes and
/// order. Then come a rotation, the four changes of torchvision's ColorJitter in a drawn order, random erasing (Zhong
/// et al., AAAI 2020) and Cutout (DeVries and Taylor, 2017).
class Augmentation {
 public:
  /// No changes at all.
  Augmentation() = default;

  /// Throws KeyError where options.augment is none of its words.
  explicit Augmentation(const AugmentationOptions& options);

  /// Whether any view may be changed.
  bool is_on() const;
  EraseFill erase_fill() const { return options_.erase_fill; }
  /// Throws KeyError where a key asks for changes of colours, which grey images do not have.
  void refuse_colours() const;

  /// The changes of a view of height x width pixels: a function of the key alone.
  PixelChanges draw(int64_t height, int64_t width, const AugmentationKey& key) const;

 private:
  enum class Policy { kNone, kTrivial, kRand, kAutoImagenet, kAutoCifar };
  struct ParsedPolicy {
    Policy policy = Policy::kNone;
    int64_t operations = 0, magnitude = 0;  // of kRand
  };
  static ParsedPolicy parsed(const std::string& text);

  AugmentationOptions options_;
  ParsedPolicy policy_;
};

}  // namespace settrain
