// The classes of an image from the largest score to the smallest.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace settrain {

/// Sorted only as far as it is read. Ties go to the lower class; -0 and +0 tie. T: float or double; values are finite.
template <class T>
class DescendingRow {
 public:
  /// For rows of so many classes.
  explicit DescendingRow(int64_t classes) : keys_(static_cast<size_t>(classes)) {}

  /// Goes to another row.
  void start(const T* row) {
    count_ = std::ssize(keys_);
    sorted_ = 0;
    for (int64_t c = 0; c < count_; ++c) keys_[static_cast<size_t>(c)] = key(row[c], c);
  }

  /// Goes to the part of another row that ends with `last`.
  void start_until(const T* row, int64_t last) {
    const Key end = key(row[last], last);
    count_ = sorted_ = 0;
    for (int64_t c = 0; c < std::ssize(keys_); ++c) {
      const Key next = key(row[c], c);
      keys_[static_cast<size_t>(count_)] = next;
      count_ += next <= end;
    }
  }

  int64_t size() const { return count_; }

  /// The class at `rank`, from 0, below size().
  int64_t at(int64_t rank) {
    while (rank >= sorted_) sort_more();
    return static_cast<int64_t>(static_cast<uint32_t>(keys_[static_cast<size_t>(rank)]));
  }

 private:
  // The value's bits, which order as descending values do, and behind them the class.
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Key = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;

  static Key key(T value, int64_t category) {
    const Bits bits = std::bit_cast<Bits>(value + T{0});
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    return Key{bits & kSign ? bits : ~bits & ~kSign} << 32 | static_cast<uint32_t>(category);
  }

  void sort_more() {
    constexpr int64_t kFirst = 32;
    const int64_t next = std::min(count_, std::max(kFirst, 4 * sorted_));
    const auto begin = keys_.begin() + sorted_, middle = keys_.begin() + next, end = keys_.begin() + count_;
    if (middle != end) std::nth_element(begin, middle, end);
    std::sort(begin, middle);
    sorted_ = next;
  }

  std::vector<Key> keys_;
  int64_t count_ = 0, sorted_ = 0;
};

}  // namespace settrain
