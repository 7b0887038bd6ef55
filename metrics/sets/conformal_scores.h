// The conformal scores of a class (metrics/sets/calibrate.h has the formulas), and the random numbers of rules.
// Calibration and prediction compute scores by the same operations, so that the image whose score is the threshold is
// in its own set.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "metrics/sets/score_rows.h"
#include "src/core/random.h"
#include "src/core/taxonomy.h"

namespace settrain {

/// The blocks of Stream::kSets.
enum class SetNoise : uint32_t {
  kJudgedImage,       // item = image
  kCalibrationImage,  // item = image
  kSplit,             // the order of the calibration images, of which the first are one part
  kKMeans,            // item = draw, step = restart
  kRarity,            // item = class
};

/// In [0, 1), a function of the arguments alone.
inline double set_noise(uint64_t seed, SetNoise use, int64_t item, uint32_t step = 0) {
  const auto words = random_words(seed, Stream::kSets, static_cast<uint32_t>(item), static_cast<uint32_t>(use),
                                  static_cast<uint32_t>(item >> 32), step);
  return unit_double(words[0], words[1]);
}

/// lac, pas and wpas: -(p factor), by the class' probability `p` and the probability `rest` = 1 - p of all other
/// classes. Takes the smaller of the two, which has all its digits.
inline DoubleDouble class_score(const CalibratedRule& rule, size_t category, double p, double rest) {
  const double factor = rule.class_factor.empty() ? 1 : rule.class_factor[category];
  if (std::isinf(factor)) return -kAlwaysIn;
  if (factor == 0) return DoubleDouble();
  return p <= 0.5 ? DoubleDouble(-scaled_probability(p, factor)) : DoubleDouble::sum(-factor, rest * factor);
}

/// aps, raps and saps, minus 1: where an image is all but sure, these scores lie so close to 1 that a double would
/// round them to it, and the probability `behind` a class keeps them apart. next() gives the scores of an image's
/// classes from the most probable one on. They never fall.
class RankedScore {
 public:
  RankedScore(const CalibratedRule& rule, double u)
      : score_(rule.rule.score), lambda_(rule.penalty().lambda), k_(static_cast<double>(rule.penalty().k)), u_(u) {}

  /// The next class' score, by its probability `p` and the summed probabilities of the classes behind it.
  DoubleDouble next(double p, double behind) {
    ++rank_;
    if (rank_ == 1) behind_first_ = behind;
    DoubleDouble score;
    if (score_ != ConformalScore::kSaps) {
      const double penalty = score_ == ConformalScore::kRaps ? lambda_ * std::max(0.0, rank_ - k_) : 0;
      score = DoubleDouble::sum(penalty, -with_part_of(p, behind));
    } else if (rank_ == 1) {
      score = DoubleDouble::sum(u_ - 1, -(u_ * behind_first_));
    } else {
      score = DoubleDouble::sum((rank_ - 2 + u_) * lambda_, -behind_first_);
    }
    return largest_ = std::max(largest_, score);
  }

 private:
  /// behind + u p, as summed_probability() has it.
  double with_part_of(double p, double behind) const {
    if (u_ == 0) return behind;
    const double part = scaled_probability(p, u_);
    return std::min(behind, part) < kTailProbability ? std::max(behind, part) : behind + part;
  }

  ConformalScore score_;
  double lambda_, k_, u_;
  double rank_ = 0, behind_first_ = 0;
  DoubleDouble largest_ = -kAlwaysIn;
};

/// The answers of the score tree to an image, which grow by a class at a time: D_j is the cover of D_{j-1} and the
/// class by at most so many nodes (NodeCover::cover()), so that each holds the one before.
class GrowingAnswer {
 public:
  GrowingAnswer(const NodeCover& tree, int64_t most_nodes);

  /// Begins with no class. `p` [classes] the probabilities, which must stay valid.
  void start(const double* p);
  /// Takes in the first class from `rank` on that is not held yet, and sets `rank` behind it. `ranked`: a RankedRow of
  /// the image. Returns false where all classes are held.
  template <class Ranked>
  bool grow_by_next(Ranked& ranked, int64_t& rank) {
    while (rank < tree_.classes()) {
      const int64_t category = ranked.at(rank++);
      if (holds(category)) continue;
      grow(category);
      return true;
    }
    return false;
  }

  /// [classes]
  const std::vector<char>& held() const { return held_; }
  bool holds(int64_t category) const { return held_[static_cast<size_t>(category)] != 0; }
  /// The summed probability of the classes held, minus 1: minus the sum of the others', which has its digits, and never
  /// falls as the answer grows.
  double score() const;

 private:
  /// Takes a class in that is not held yet.
  void grow(int64_t category);

  const NodeCover& tree_;
  int64_t most_nodes_;
  const double* p_ = nullptr;
  std::vector<double> mass_;    // [nodes of the tree]
  std::vector<int64_t> nodes_;  // of the answer
  std::vector<char> held_;
};

/// The u of a rule that is not randomised.
inline double fixed_u(ConformalScore score) {
  return score == ConformalScore::kSaps ? 1 : 0;
}

/// [images] the score of every label by `rule`, whose `class_factor` and `seed` are set; u is that of calibration
/// images. The score is -p of rules that are not conformal. `scores` [images, classes] float32 or float64 on the CPU,
/// contiguous, `labels` [images].
std::vector<DoubleDouble> label_scores(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels);

/// [classes] w_y / pi_y, by which pas and wpas multiply probabilities: pi_y the class' share of the training images,
/// w_y its weight by the rule's file (a class table), or 1 for pas. Infinite where pi_y = 0. Empty for other scores.
/// Throws DataError where the file cannot be read, or holds what is no weight.
std::vector<double> class_factors(const SetRule& rule, const ClassFacts& facts);

}  // namespace settrain
