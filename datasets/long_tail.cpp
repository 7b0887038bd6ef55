#include "datasets/long_tail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/random.h"

namespace settrain {
namespace {

constexpr const char* kImbalance = "data.long_tail.imbalance";

// The samples of every class, in their order.
std::vector<std::vector<int64_t>> by_class(const Split& split, int64_t num_classes) {
  std::vector<std::vector<int64_t>> samples(static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < split.size(); ++i) {
    samples[static_cast<size_t>(split.labels[static_cast<size_t>(i)])].push_back(i);
  }
  return samples;
}

}  // namespace

config::Keys LongTailOptions::keys() {
  using config::key;
  using O = LongTailOptions;
  return {
      key("long_tail.imbalance", &O::imbalance, 1.0,
          "Imbalance factor: ratio of the training images of the first class to those of the last, with an "
          "exponential profile between them; the other images are left out (Cao et al. 2019). 1 keeps all.")
          .at_least(1)
          .at_most(1e6),
      key("long_tail.seed", &O::seed, int64_t{1}, "Seed that selects the training images that are kept of each class.")
          .at_least(0),
      key("long_tail.rounding", &O::rounding, O::kNearest,
          "How a class' number of images becomes a whole one: nearest, or down, as in the code of Cao et al. "
          "(CIFAR-100 with an imbalance of 100: 10,899 or 10,847 images).")
          .one_of({O::kNearest, O::kDown})};
}

void long_tail_rule(const config::Config& config) {
  const bool has_tail = config.get<double>(kImbalance) > 1;
  for (const char* path : {"data.long_tail.seed", "data.long_tail.rounding"}) {
    config.refuse_unread(path, has_tail, fmt::format("{} above 1", kImbalance));
  }
}

std::vector<int64_t> long_tail_counts(const LongTailOptions& options, std::vector<int64_t> counts) {
  constexpr double kTiny = 1e-9;  // 500 * 100^-1 counts as 5 whatever its last bit
  const auto largest = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const double last = static_cast<double>(std::max<size_t>(counts.size() - 1, 1));
  for (size_t j = 0; j < counts.size(); ++j) {
    const double wanted = largest * std::pow(options.imbalance, -static_cast<double>(j) / last);
    const double whole = options.rounding == LongTailOptions::kDown ? std::floor(wanted + kTiny) : std::round(wanted);
    counts[j] = std::min(counts[j], std::max<int64_t>(1, static_cast<int64_t>(whole)));
  }
  return counts;
}

void apply_long_tail(const LongTailOptions& options, Dataset& dataset) {
  if (options.imbalance == 1) return;
  if (dataset.truth) {
    throw KeyError(kImbalance, "this data set's P(y | x) is known and would no longer hold; data.imbalance does it");
  }
  const auto samples = by_class(dataset.train, dataset.num_classes());
  std::vector<int64_t> counts;
  for (const auto& of_class : samples) counts.push_back(std::ssize(of_class));
  const std::vector<int64_t> wanted = long_tail_counts(options, counts);
  std::vector<int64_t> kept;
  for (size_t j = 0; j < samples.size(); ++j) {
    const auto order =
        permutation(counts[j], static_cast<uint64_t>(options.seed), Stream::kLongTail, static_cast<uint32_t>(j));
    for (int64_t i = 0; i < wanted[j]; ++i) {
      kept.push_back(samples[j][static_cast<size_t>(order[static_cast<size_t>(i)])]);
    }
  }
  std::sort(kept.begin(), kept.end());
  dataset.train = some_of(dataset.train, kept);
  std::string recipe = fmt::format("{}\nlong tail {} {}\n", dataset.digest, options.imbalance, options.seed);
  if (options.rounding != LongTailOptions::kNearest) recipe += fmt::format("rounding {}\n", options.rounding);
  dataset.digest = sha256(recipe);
}

}  // namespace settrain
