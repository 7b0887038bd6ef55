#include "metrics/sets/conformal_thresholds.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "metrics/sets/conformal_scores.h"
#include "src/core/random.h"

namespace settrain {

int64_t conformal_rank(int64_t images, double alpha) {
  const double next = static_cast<double>(images) + 1;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(next * (1 - alpha) - 1e-14 * next)));
}

int64_t images_needed(double alpha) {
  constexpr double kMost = 1e18;
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(kMost, std::ceil((1 - alpha) / alpha * (1 - 1e-13)))));
}

DoubleDouble conformal_quantile(std::vector<DoubleDouble> scores, double alpha) {
  const int64_t rank = conformal_rank(std::ssize(scores), alpha);
  if (rank > std::ssize(scores)) return std::numeric_limits<double>::infinity();
  std::nth_element(scores.begin(), scores.begin() + rank - 1, scores.end());
  return scores[static_cast<size_t>(rank - 1)];
}

std::vector<DoubleDouble> conformal_quantiles(const std::vector<DoubleDouble>& scores,
                                              const std::vector<int64_t>& group_of, int64_t groups, double alpha) {
  std::vector<std::vector<DoubleDouble>> of_group(static_cast<size_t>(groups));
  for (size_t i = 0; i < scores.size(); ++i) {
    if (group_of[i] >= 0) of_group[static_cast<size_t>(group_of[i])].push_back(scores[i]);
  }
  std::vector<DoubleDouble> quantiles;
  for (std::vector<DoubleDouble>& group : of_group) quantiles.push_back(conformal_quantile(std::move(group), alpha));
  return quantiles;
}

std::pair<LabelScores, LabelScores> parts_of(const LabelScores& all, int64_t first, uint64_t seed) {
  const std::vector<int64_t> order =
      permutation(std::ssize(all.labels), seed, Stream::kSets, 0, static_cast<uint32_t>(SetNoise::kSplit));
  std::pair<LabelScores, LabelScores> parts;
  for (size_t i = 0; i < order.size(); ++i) {
    LabelScores& part = static_cast<int64_t>(i) < first ? parts.first : parts.second;
    part.scores.push_back(all.scores[static_cast<size_t>(order[i])]);
    part.labels.push_back(all.labels[static_cast<size_t>(order[i])]);
  }
  return parts;
}

namespace {

std::vector<double> rarities(const std::vector<int64_t>& train_counts, uint64_t seed) {
  constexpr double kNoise = 0.01;
  const auto most = static_cast<double>(*std::max_element(train_counts.begin(), train_counts.end()));
  std::vector<double> places;
  for (size_t c = 0; c < train_counts.size(); ++c) {
    const double u = set_noise(seed, SetNoise::kRarity, static_cast<int64_t>(c));
    places.push_back(static_cast<double>(train_counts[c]) / most + kNoise * (2 * u - 1));
  }
  return places;
}

LabelScores sorted_by_score(const LabelScores& images) {
  std::vector<size_t> order(images.labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return images.scores[a] < images.scores[b]; });
  LabelScores sorted;
  for (const size_t i : order) {
    sorted.scores.push_back(images.scores[i]);
    sorted.labels.push_back(images.labels[i]);
  }
  return sorted;
}

/// The F_y of all classes. Computing one takes time in proportion to the images, however many classes there are.
class FuzzyDistributions {
 public:
  FuzzyDistributions(const LabelScores& images, std::vector<double> places, double sigma)
      : images_(sorted_by_score(images)), places_(std::move(places)), counts_(places_.size()), sigma_(sigma) {
    for (const int64_t label : images_.labels) ++counts_[static_cast<size_t>(label)];
    std::vector<size_t> number(places_.size());
    for (size_t z = 0; z < counts_.size(); ++z) {
      if (counts_[z] == 0) continue;
      number[z] = labels_.size();
      labels_.push_back(z);
    }
    for (const int64_t label : images_.labels) label_of_image_.push_back(number[static_cast<size_t>(label)]);
  }

  const std::vector<DoubleDouble>& scores() const { return images_.scores; }

  /// [scores] F_y of each.
  std::vector<double> shares(size_t y) const {
    std::vector<double> weights, shares;
    for (const size_t z : labels_) {
      const double distance = places_[y] - places_[z];
      weights.push_back(std::exp(-distance * distance * (static_cast<double>(counts_[y]) + 1) / (2 * sigma_)));
    }
    double sum = 0;
    for (const size_t label : label_of_image_) shares.push_back(sum += weights[label]);
    for (double& share : shares) share /= sum + 1;
    return shares;
  }

 private:
  LabelScores images_;
  std::vector<double> places_;
  std::vector<int64_t> counts_;
  std::vector<size_t> labels_;          // the classes that have images
  std::vector<size_t> label_of_image_;  // [images] a place in labels_
  double sigma_;
};

template <class Use>
void for_each_class(size_t classes, const Use& use) {
  at::parallel_for(0, static_cast<int64_t>(classes), 1, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) use(static_cast<size_t>(y));
  });
}

}  // namespace

std::vector<DoubleDouble> fuzzy_thresholds(const SetRule& rule, const LabelScores& images,
                                           const std::vector<int64_t>& train_counts, uint64_t seed) {
  constexpr int64_t kMostHeldOut = 5000;
  const int64_t n = std::ssize(images.labels);
  const int64_t first =
      rule.share > 0 ? static_cast<int64_t>(rule.share * static_cast<double>(n)) : n - std::min(kMostHeldOut, n / 4);
  const auto [weighted, held_out] = parts_of(images, first, seed);
  const FuzzyDistributions distributions(weighted, rarities(train_counts, seed), rule.sigma);
  const std::vector<DoubleDouble>& scores = distributions.scores();

  std::vector<std::vector<size_t>> held_out_of(train_counts.size());
  for (size_t i = 0; i < held_out.labels.size(); ++i) held_out_of[static_cast<size_t>(held_out.labels[i])].push_back(i);
  std::vector<DoubleDouble> levels(held_out.labels.size());
  for_each_class(train_counts.size(), [&, &all = held_out](size_t y) {
    if (held_out_of[y].empty()) return;
    const std::vector<double> shares = distributions.shares(y);
    for (const size_t i : held_out_of[y]) {
      const auto above = std::upper_bound(scores.begin(), scores.end(), all.scores[i]) - scores.begin();
      levels[i] = above == 0 ? 0 : shares[static_cast<size_t>(above) - 1];
    }
  });
  const double level = conformal_quantile(std::move(levels), rule.level).high;

  std::vector<DoubleDouble> thresholds(train_counts.size(), kAlwaysIn);
  for_each_class(train_counts.size(), [&](size_t y) {
    const std::vector<double> shares = distributions.shares(y);
    const auto next = std::upper_bound(shares.begin(), shares.end(), level);
    if (next == shares.end()) return;
    // The largest number below the first score whose share is above the level.
    const DoubleDouble above = scores[static_cast<size_t>(next - shares.begin())];
    thresholds[y] = DoubleDouble::sum(above.high, std::nextafter(above.low, -std::numeric_limits<double>::infinity()));
  });
  return thresholds;
}

}  // namespace settrain
