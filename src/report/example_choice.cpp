#include "src/report/example_choice.h"

#include <algorithm>
#include <numeric>

namespace settrain {
namespace {

std::vector<int64_t> spread(const std::vector<int64_t>& samples, size_t most) {
  if (samples.size() <= most) return samples;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(samples[i * samples.size() / most]);
  return chosen;
}

}  // namespace

ChosenExamples choose_examples(const std::vector<int64_t>& sizes, const std::vector<bool>& hits, size_t each) {
  std::vector<int64_t> right, missed;
  for (size_t i = 0; i < hits.size(); ++i) (hits[i] ? right : missed).push_back(static_cast<int64_t>(i));
  ChosenExamples chosen{spread(right, each), spread(missed, each), {}};
  if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end()) return chosen;
  chosen.large.resize(sizes.size());
  std::iota(chosen.large.begin(), chosen.large.end(), 0);
  std::stable_sort(chosen.large.begin(), chosen.large.end(),
                   [&](int64_t a, int64_t b) { return sizes[static_cast<size_t>(a)] > sizes[static_cast<size_t>(b)]; });
  chosen.large.resize(std::min(chosen.large.size(), each));
  return chosen;
}

}  // namespace settrain
