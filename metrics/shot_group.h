// Groups of classes by their number of training images.
#pragma once

#include <cstdint>

namespace settrain {

/// Training images of a class: few < 20, medium 20 to 100 (both included), many > 100 (the captions of Tables 4.5, 4.6
/// and 5.2 in Garcin 2023).
enum class ShotGroup { kFew, kMedium, kMany };

inline constexpr int64_t kFewBelow = 20, kManyAbove = 100;

constexpr ShotGroup shot_group(int64_t train_count) {
  if (train_count < kFewBelow) return ShotGroup::kFew;
  return train_count <= kManyAbove ? ShotGroup::kMedium : ShotGroup::kMany;
}

}  // namespace settrain
