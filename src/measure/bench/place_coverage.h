// How rules for a place hold where classes are resampled to known shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/sets/rules/set_rule.h"
#include "src/inference/score_file.h"

namespace settrain {

struct PlaceBench {
  int64_t draws = 200;     // resamplings
  int64_t images = 2000;   // that judge in each, and as many without labels, which estimate the shares
  double imbalance = 100;  // the commonest class' share over the rarest's
  uint64_t seed = 1;
};

/// A way to answer at the place, over the draws.
struct PlaceOutcome {
  std::string way;
  double coverage = 0, error = 0;  // mean, and its standard error
  double mean_size = 0;
};

/// In each draw, one random half of the images calibrates. The classes, in a random order, get shares at the place that
/// fall geometrically; images of the other half are drawn with replacement, each class by its share. They are judged by
/// the rule as it is, by its form for the place with the true shares (for_place()) on the scores as they are and
/// corrected (with_offsets()), with shares that shares_by_likelihood() estimates from other images that are drawn the
/// same way, and with the true shares in reverse order, which are wrong. The model's softmax is taken to assume the
/// shares of `train_counts`, where the file has them, else equal ones.
///
/// Throws ConfigError where the rule has no form for a place, or the probabilities are sigmoids.
std::vector<PlaceOutcome> place_coverage(const SetRule& rule, const ScoreFile& scores, const PlaceBench& bench);

}  // namespace settrain
