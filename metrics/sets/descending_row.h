// The classes of an image from the largest score to the smallest.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "metrics/count.h"
#include "metrics/sets/radix_sort.h"

namespace settrain {

/// Sorted only as far as it is read, some classes at a time: those between two bounds, which counting finds. Ties go to
/// the lower class; -0 and +0 tie. T: float or double; values are finite.
template <class T>
class DescendingRow {
 public:
  /// For rows of so many classes.
  explicit DescendingRow(int64_t classes) : classes_(classes), keys_(static_cast<size_t>(classes) + 1) {}

  /// Goes to another row, which must stay where it is.
  void start(const T* row) {
    row_ = row;
    sorted_ = 0;
    bound_ = std::numeric_limits<T>::infinity();
  }

  /// The class at `rank`, from 0, below the number of classes.
  int64_t at(int64_t rank) {
    while (rank >= sorted_) sort_more();
    return static_cast<int64_t>(static_cast<uint32_t>(keys_[static_cast<size_t>(rank)]));
  }

  /// How many ranks have been sorted.
  int64_t sorted() const { return sorted_; }

  /// All values >= it have been sorted, and no others.
  T bound() const { return bound_; }

 private:
  // The value's bits, which order as descending values do, and behind them the class.
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Key = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;

  Key key(int64_t category) const {
    const Bits bits = std::bit_cast<Bits>(row_[category] + T{0});
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    return Key{bits & kSign ? bits : ~bits & ~kSign} << 32 | static_cast<uint32_t>(category);
  }

  /// Adds the classes with values from `bound` up to the last bound.
  void sort_down_to(T bound) {
    int64_t end = sorted_;
    for (int64_t c = 0; c < classes_; ++c) {
      keys_[static_cast<size_t>(end)] = static_cast<Key>(c);
      end += static_cast<int64_t>(row_[c] >= bound) & static_cast<int64_t>(row_[c] < bound_);
    }
    const auto first = keys_.begin() + sorted_, last = keys_.begin() + end;
    for (auto it = first; it != last; ++it) *it = key(static_cast<int64_t>(*it));
    constexpr int64_t kMany = 192;
    if (end - sorted_ < kMany) {
      std::sort(first, last);
    } else {
      radix_sort<32, 32 + 8 * sizeof(T)>(std::span<Key>(first, last), scratch_);  // classes come in their order
    }
    sorted_ = end;
    bound_ = bound;
  }

  /// A bound that at least `wanted` values reach, and where values allow it not more than twice as many.
  T bound_for(int64_t wanted) const {
    constexpr int kHalvings = 12;
    constexpr int64_t kSample = 64;
    T low = row_[0], high = low;
    for (int64_t c = 0; c < classes_; c += std::max<int64_t>(1, classes_ / kSample)) {
      low = std::min(low, row_[c]);
      high = std::max(high, row_[c]);
    }
    if (count_at_least(row_, classes_, low) < wanted) return std::numeric_limits<T>::lowest();
    for (int i = 0; i < kHalvings; ++i) {
      const T middle = low / 2 + high / 2;
      const int64_t count = count_at_least(row_, classes_, middle);
      (count < wanted ? high : low) = middle;
      if (count >= wanted && count <= 2 * wanted) break;
    }
    return low;
  }

  void sort_more() {
    constexpr int64_t kFirst = 32;
    const int64_t wanted = std::max(kFirst, 4 * sorted_);
    sort_down_to(2 * wanted < classes_ ? bound_for(wanted) : std::numeric_limits<T>::lowest());
  }

  int64_t classes_;
  const T* row_ = nullptr;
  std::vector<Key> keys_;  // [classes + 1]: of the first `sorted_` ranks; one more for what is not taken
  std::vector<Key> scratch_;
  int64_t sorted_ = 0;
  T bound_ = 0;
};

}  // namespace settrain
