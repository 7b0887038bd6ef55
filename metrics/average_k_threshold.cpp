#include "metrics/average_k_threshold.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <type_traits>

#include "metrics/count.h"
#include "src/core/values_in_sets.h"

namespace settrain {
namespace {

constexpr int kDigitBits = 16;
constexpr int64_t kDigits = int64_t{1} << kDigitBits;
constexpr int64_t kTables = 32;              // of kDigits counts, of all threads together
constexpr int64_t kValuesPerTask = 1 << 17;  // at least: a task clears and adds up its tables

/// Numbers of type T as unsigned integers in the same order, NaN of either sign above +infinity.
template <class T>
struct Ordered {
  using Key = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr int kBits = 8 * sizeof(T);
  static constexpr Key kSign = Key{1} << (kBits - 1);
  // Below -infinity lie the NaN with a sign: the subtraction takes them round to the top.
  static constexpr Key kLowest = ~std::bit_cast<Key>(-std::numeric_limits<T>::infinity());

  static Key key(T value) {
    const Key bits = std::bit_cast<Key>(value);
    const Key all_if_negative = Key{0} - (bits >> (kBits - 1));
    return (bits ^ (all_if_negative | kSign)) - kLowest;
  }

  static T value(Key key) {
    key += kLowest;
    return std::bit_cast<T>(key & kSign ? key ^ kSign : ~key);
  }
};

/// A rank that is sought, among the values whose keys begin with `prefix`.
template <class Key>
struct Sought {
  int64_t rank;
  size_t place;  // in the caller's list
  Key prefix = 0;
};

/// Adds to a table of kDigits counts the values whose keys begin with `only`, by their keys' next digit, which starts
/// at bit `shift`.
template <class T>
void count_under(typename Ordered<T>::Key only, std::span<const T> values, int shift, int64_t* counts) {
  for (const T value : values) {
    const auto high = Ordered<T>::key(value) >> shift;
    if (high >> kDigitBits == only) ++counts[high % kDigits];
  }
}

/// The same for several `prefixes`, from the largest to the smallest, with a table each. Few values have one of them
/// where the ranks are near each other.
template <class T>
void count_under(std::span<const typename Ordered<T>::Key> prefixes, std::span<const T> values, int shift,
                 int64_t* counts) {
  const auto least = prefixes.back(), range = prefixes.front() - prefixes.back();
  for (const T value : values) {
    const auto high = Ordered<T>::key(value) >> shift;
    const auto prefix = high >> kDigitBits;
    if (prefix - least > range) continue;
    size_t table = 0;
    while (prefixes[table] > prefix) ++table;
    if (prefixes[table] == prefix) ++counts[table * kDigits + high % kDigits];
  }
}

/// The tables of all values.
template <class T>
std::vector<int64_t> count_digits(std::span<const T> values, std::span<const typename Ordered<T>::Key> prefixes,
                                  int shift) {
  std::vector<int64_t> sum(prefixes.size() * kDigits);
  std::mutex mutex;
  at::parallel_for(0, static_cast<int64_t>(values.size()), kValuesPerTask, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> counts(sum.size());
    const std::span<const T> part = values.subspan(begin, end - begin);
    if (prefixes.size() == 1) {
      count_under<T>(prefixes.front(), part, shift, counts.data());
    } else {
      count_under<T>(prefixes, part, shift, counts.data());
    }
    const std::lock_guard lock(mutex);
    std::transform(sum.begin(), sum.end(), counts.begin(), sum.begin(), std::plus<>());
  });
  return sum;
}

/// Lengthens the prefix of values that are sought, all of one prefix and by ascending rank, by a digit.
template <class Key>
void descend(std::span<Sought<Key>> sought, const int64_t* counts) {
  int64_t digit = kDigits - 1, above = 0;
  for (Sought<Key>& value : sought) {
    while (value.rank >= above + counts[digit]) above += counts[digit--];
    value.rank -= above;
    value.prefix = value.prefix << kDigitBits | static_cast<Key>(digit);
  }
}

template <class T>
std::vector<double> select_on_cpu(const at::Tensor& values, std::span<const int64_t> ranks) {
  using Key = typename Ordered<T>::Key;
  const at::Tensor contiguous = values.contiguous();
  const std::span<const T> span(contiguous.const_data_ptr<T>(), static_cast<size_t>(contiguous.numel()));
  std::vector<Sought<Key>> all;
  for (const int64_t rank : ranks) all.push_back({rank, all.size()});
  // Prefixes descend where ranks ascend, and stay in that order.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto tables = static_cast<size_t>(std::max<int64_t>(1, kTables / (at::get_num_threads() + 1)));
  for (int shift = Ordered<T>::kBits - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (auto first = all.begin(); first != all.end();) {
      std::vector<Key> prefixes;
      std::vector<std::span<Sought<Key>>> groups;
      while (first != all.end() && prefixes.size() < tables) {
        const auto same = [&](const Sought<Key>& other) { return other.prefix == first->prefix; };
        const auto last = std::find_if_not(first, all.end(), same);
        prefixes.push_back(first->prefix);
        groups.emplace_back(first, last);
        first = last;
      }
      const std::vector<int64_t> counts = count_digits<T>(span, prefixes, shift);
      for (size_t i = 0; i < groups.size(); ++i) descend(groups[i], counts.data() + i * kDigits);
    }
  }
  std::vector<double> found(ranks.size());
  for (const Sought<Key>& sought : all) found[sought.place] = Ordered<T>::value(sought.prefix);
  return found;
}

/// By at::topk; the host waits for the device once.
std::vector<double> select_on_device(const at::Tensor& values, std::span<const int64_t> ranks) {
  const at::Tensor largest = std::get<0>(at::topk(values.flatten(), *std::max_element(ranks.begin(), ranks.end()) + 1));
  const at::Tensor places = at::tensor(at::ArrayRef<int64_t>(ranks.data(), ranks.size()), at::kLong);
  const at::Tensor found = largest.index_select(0, places.to(values.device())).to(at::kCPU, at::kDouble);
  return {found.const_data_ptr<double>(), found.const_data_ptr<double>() + found.numel()};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double threshold_between(double upper, double lower, double middle, Ties ties) {
  if (ties == Ties::kKeepAll) return middle > lower && middle <= upper ? middle : upper;
  return middle < upper && middle >= lower ? middle : lower;
}

/// The smallest number of type T that is returned: a float32 tensor compared with a float64 lambda would round lambda.
template <class T>
T smallest_returned(double lambda, Ties ties) {
  T value = static_cast<T>(lambda);
  const bool returned = ties == Ties::kKeepAll ? value >= lambda : value > lambda;
  if (!returned) value = std::nextafter(value, std::numeric_limits<T>::infinity());
  return value;
}

/// One pass over the values for all thresholds: a row stays in the cache.
template <class T>
void count_on_cpu(const at::Tensor& values, std::span<const double> lambdas, Ties ties, int64_t* sizes) {
  const int64_t samples = values.size(0), classes = values.size(1);
  const T* rows = values.const_data_ptr<T>();
  std::vector<T> bounds;
  for (const double lambda : lambdas) bounds.push_back(smallest_returned<T>(lambda, ties));
  at::parallel_for(0, samples, rows_per_task(classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (size_t i = 0; i < bounds.size(); ++i) {
        sizes[static_cast<int64_t>(i) * samples + row] = count_at_least(rows + row * classes, classes, bounds[i]);
      }
    }
  });
}

}  // namespace

std::vector<double> order_statistics(const at::Tensor& values, std::span<const int64_t> ranks) {
  if (ranks.empty()) return {};
  std::vector<double> found = !values.is_cpu()                      ? select_on_device(values, ranks)
                              : values.scalar_type() == at::kDouble ? select_on_cpu<double>(values, ranks)
                                                                    : select_on_cpu<float>(values, ranks);
  for (double& value : found) value += 0.0;  // -0 becomes +0
  return found;
}

std::vector<double> average_k_thresholds(const at::Tensor& values, std::span<const double> ks, Ties ties,
                                         double (*middle)(double upper, double lower)) {
  const int64_t samples = values.size(0), classes = values.size(1);
  std::vector<int64_t> kept, ranks;  // for every K; the last value kept and the next, where both exist
  for (const double k : ks) {
    kept.push_back(values_in_sets(k, samples, classes));
    if (kept.back() > 0 && kept.back() < values.numel()) ranks.insert(ranks.end(), {kept.back() - 1, kept.back()});
  }
  const std::vector<double> selected = order_statistics(values, ranks);

  std::vector<double> thresholds;
  const double* next = selected.data();
  for (const int64_t m : kept) {
    if (m == 0) {
      thresholds.push_back(kInfinity);
    } else if (m == values.numel()) {
      thresholds.push_back(-kInfinity);
    } else {
      const double mean = middle ? middle(next[0], next[1]) : std::midpoint(next[0], next[1]);
      thresholds.push_back(threshold_between(next[0], next[1], mean, ties));
      next += 2;
    }
  }
  return thresholds;
}

at::Tensor returned_classes(const at::Tensor& values, double lambda, Ties ties) {
  return values.ge(values.scalar_type() == at::kFloat ? smallest_returned<float>(lambda, ties)
                                                      : smallest_returned<double>(lambda, ties));
}

at::Tensor set_sizes(const at::Tensor& values, std::span<const double> lambdas, Ties ties) {
  const int64_t samples = values.size(0);
  at::Tensor sizes = at::empty({static_cast<int64_t>(lambdas.size()), samples}, values.options().dtype(at::kLong));
  if (values.is_cpu()) {
    const auto count = values.scalar_type() == at::kDouble ? count_on_cpu<double> : count_on_cpu<float>;
    count(values.contiguous(), lambdas, ties, sizes.data_ptr<int64_t>());
  } else {
    for (size_t i = 0; i < lambdas.size(); ++i) {
      sizes.select(0, static_cast<int64_t>(i)).copy_(returned_classes(values, lambdas[i], ties).sum(1));
    }
  }
  return sizes;
}

}  // namespace settrain
