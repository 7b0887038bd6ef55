#include "src/measure/bench/place_coverage.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/label_shift.h"
#include "metrics/sets/p_values.h"
#include "metrics/sets/set_quality.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/random.h"

namespace settrain {
namespace {

enum class DrawStep : uint32_t { kHalves, kClasses, kJudged, kUnlabelled };

uint32_t step_of(int64_t draw, DrawStep what) {
  return static_cast<uint32_t>(4 * draw + static_cast<int64_t>(what) + 16);
}

/// [classes] shares that fall geometrically in a random order of the classes.
std::vector<double> falling_shares(int64_t classes, double imbalance, const std::vector<int64_t>& order) {
  std::vector<double> shares(static_cast<size_t>(classes));
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) {
    const double place = static_cast<double>(i) / std::max<double>(1, static_cast<double>(classes - 1));
    sum += shares[static_cast<size_t>(order[static_cast<size_t>(i)])] = std::pow(imbalance, -place);
  }
  for (double& share : shares) share /= sum;
  return shares;
}

/// Images drawn with replacement: a class by its share, and one of its images.
SplitScores resampled(const SplitScores& pool, const std::vector<double>& shares, int64_t images, uint64_t seed,
                      uint32_t step) {
  std::vector<std::vector<int64_t>> of_class(shares.size());
  for (int64_t i = 0; i < pool.labels.size(0); ++i)
    of_class[static_cast<size_t>(pool.labels.const_data_ptr<int64_t>()[i])].push_back(i);
  std::vector<double> sums;
  double sum = 0;
  for (size_t c = 0; c < shares.size(); ++c) sums.push_back(sum += of_class[c].empty() ? 0 : shares[c]);
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < images; ++i) {
    const auto words = random_words(seed, Stream::kCalibration, static_cast<uint32_t>(i), step, 0, 0);
    const auto found = std::ranges::upper_bound(sums, unit_double(words[0], words[1]) * sum) - sums.begin();
    const std::vector<int64_t>& members = of_class[static_cast<size_t>(std::min(found, std::ssize(sums) - 1))];
    drawn.push_back(members[static_cast<size_t>(words[2]) % members.size()]);
  }
  return samples_of(pool, drawn);
}

}  // namespace

std::vector<PlaceOutcome> place_coverage(const SetRule& rule, const ScoreFile& scores, const PlaceBench& bench) {
  const ClassFacts& facts = scores.facts;
  if (facts.probability != ProbabilityKind::kSoftmax)
    throw ConfigError("places need the probabilities of a softmax, and these are of sigmoids");
  std::vector<double> of_model(static_cast<size_t>(facts.classes), 1.0);
  for (size_t c = 0; c < facts.train_counts.size(); ++c)
    of_model[c] = std::max(0.5, static_cast<double>(facts.train_counts[c]));

  constexpr std::array kWays{"the rule for no place",
                             "true shares, scores as they are",
                             "true shares, corrected scores",
                             "estimated shares (EM), corrected scores",
                             "wrong shares, scores as they are",
                             "wrong shares, corrected scores"};
  std::array<double, kWays.size()> sums{}, squares{}, sizes{};
  const int64_t all = scores.scores.labels.size(0);
  for (int64_t draw = 0; draw < bench.draws; ++draw) {
    throw_if_interrupted();
    const std::vector<int64_t> order =
        permutation(all, bench.seed, Stream::kCalibration, step_of(draw, DrawStep::kHalves));
    const std::span<const int64_t> drawn(order);
    const SplitScores known = samples_of(scores.scores, drawn.first(drawn.size() / 2)),
                      pool = samples_of(scores.scores, drawn.subspan(drawn.size() / 2));
    const std::vector<int64_t> classes =
        permutation(facts.classes, bench.seed, Stream::kCalibration, step_of(draw, DrawStep::kClasses));
    const std::vector<double> shares = falling_shares(facts.classes, bench.imbalance, classes),
                              wrong =
                                  falling_shares(facts.classes, bench.imbalance, {classes.rbegin(), classes.rend()});
    const SplitScores judged = resampled(pool, shares, bench.images, bench.seed, step_of(draw, DrawStep::kJudged));
    const SplitScores unlabelled =
        resampled(pool, shares, bench.images, bench.seed, step_of(draw, DrawStep::kUnlabelled));
    const std::vector<double> estimated =
        shares_by_likelihood(probabilities_of(unlabelled.scores, ProbabilityKind::kSoftmax), of_model);

    const CalibratedRule plain = calibrate(rule, facts, known.scores, known.labels, bench.seed);
    const auto corrected = [&](const std::vector<double>& prior) {
      const std::vector<double> offsets = score_offsets(prior, of_model);
      const CalibratedRule there =
          calibrate(rule, facts, with_offsets(known.scores, offsets), known.labels, bench.seed);
      return sets_of(for_place(there, place_weights(there, prior)), with_offsets(judged.scores, offsets));
    };
    const auto weighted = [&](const std::vector<double>& prior) {
      return sets_of(for_place(plain, place_weights(plain, prior)), judged.scores);
    };
    const std::array sets{sets_of(plain, judged.scores), weighted(shares), corrected(shares),
                          corrected(estimated),          weighted(wrong),  corrected(wrong)};
    for (size_t way = 0; way < kWays.size(); ++way) {
      const SetQuality quality = set_quality(sets[way], judged.labels, rule.wanted_coverage(), {});
      sums[way] += quality.coverage;
      squares[way] += quality.coverage * quality.coverage;
      sizes[way] += quality.mean_size;
    }
  }
  const auto n = static_cast<double>(bench.draws);
  std::vector<PlaceOutcome> outcomes;
  for (size_t way = 0; way < kWays.size(); ++way) {
    const double mean = sums[way] / n;
    outcomes.push_back(
        {kWays[way], mean, std::sqrt(std::max(0.0, squares[way] / n - mean * mean) / n), sizes[way] / n});
  }
  return outcomes;
}

}  // namespace settrain
