// How fast rules are calibrated and answer with sets.
#pragma once

#include <cstdint>
#include <vector>

#include "metrics/sets/rules/set_rule.h"
#include "src/inference/score_file.h"

namespace settrain {

/// Scores of images with a long tail of labels: class c has a share of 0.99^c; scores are normal, with standard
/// deviation 2, and the label's is 8 larger, which gives a top-1 accuracy of about two thirds for 1,000 classes.
/// float32.
ScoreFile random_labelled_scores(int64_t images, int64_t classes);

/// Of one rule, the seconds of every round.
struct SetTimes {
  std::vector<double> calibrate, predict;
  double mean_size = 0;  // of its sets
};

/// Calibrates the rule on the scores and makes the sets of the same images, once, into `times`. Throws Interrupted
/// where a signal asks to stop.
void measure_sets(const SetRule& rule, const ScoreFile& scores, SetTimes& times);

}  // namespace settrain
