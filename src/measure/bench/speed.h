// How fast images are loaded, metrics are computed, and rules answer with sets.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "datasets/image_files.h"
#include "metrics/sets/rules/set_rule.h"
#include "src/eval/evaluator.h"
#include "src/inference/score_file.h"
#include "src/loader/loader.h"
#include "src/train/peak_memory.h"

namespace settrain {

/// Seconds that one thread spends on some images.
struct LoadingTimes {
  int64_t images = 0;
  double read = 0;    // the file's bytes
  double decode = 0;  // of what the view needs
  double render = 0;  // scaling, cropping, normalising
  double whole = 0;   // decoding of the whole image, which is no part of loading

  double loading() const { return read + decode + render; }
  LoadingTimes& operator+=(const LoadingTimes& other);
};

/// Loads the images `ids` of an epoch one after the other, stage by stage, and decodes the whole of each too, before
/// it or after it in turn, so that a slow moment of the machine hits both alike.
LoadingTimes measure_stages(const ImageFiles& files, const ImageFileOptions& options, const std::vector<int64_t>& ids,
                            const Transform& transform, int64_t epoch);

/// Images a second that the loader makes of an epoch, its threads' start included. With several threads some have
/// nothing left to do at the end: an epoch should have many more batches than there are threads.
double measure_loader(Loader& loader, int64_t epoch);

/// One way to compute something: the seconds of every round, and the most memory that it took on top of its input,
/// where the system tells that.
struct WorkTimes {
  std::vector<double> seconds;
  std::optional<PeakMemory> extra;
};

struct MetricTimes {
  WorkTimes thresholds;  // average-K's, of the softmax of the scores, for every K
  WorkTimes full_sort;   // at::sort of the same values
  WorkTimes ranks;       // of the labels: all top-K accuracies
  WorkTimes row_topk;    // at::topk of every sample's scores, for the largest K
  WorkTimes row_sort;    // at::sort of every sample's scores
  WorkTimes evaluation;  // every metric of the evaluator, from the scores
};

struct MetricSpeedOptions {
  int64_t samples = 50000, classes = 1000;
  std::vector<double> average_k{1, 2, 5, 10};
  int64_t largest_k = 10;  // of at::topk
  bool sorts = true;       // are measured too
};

/// Measures metrics of random float32 scores, normal with standard deviation 3, always the same on a device.
class MetricSpeed {
 public:
  /// Throws Error where the memory at hand is not enough for what will be measured.
  MetricSpeed(const Evaluator& evaluator, const MetricSpeedOptions& options, at::Device device);

  /// Each way once, one after the other, into `times`; the sorts only where `with_sorts`.
  void measure(bool with_sorts, MetricTimes& times) const;

 private:
  /// One round with `rows` of the samples.
  void measure_rows(int64_t rows, bool with_sorts, MetricTimes& times) const;

  const Evaluator& evaluator_;
  MetricSpeedOptions options_;
  at::Device device_;
  SplitScores split_;
  at::Tensor probabilities_;
};

/// Scores of images with a long tail of labels: class c has a share of 0.99^c; scores are normal, with standard
/// deviation 2, and the label's is 8 larger, which gives a top-1 accuracy of about two thirds for 1,000 classes.
/// float32.
ScoreFile random_labelled_scores(int64_t images, int64_t classes);

/// The seconds of one rule in every round.
struct SetTimes {
  std::vector<double> calibrate, predict;
  double mean_size = 0;  // of its sets
};

/// Calibrates the rule on the scores and makes the sets of the same images, once, into `times`. Throws Interrupted
/// where a signal asks to stop.
void measure_sets(const SetRule& rule, const ScoreFile& scores, SetTimes& times);

}  // namespace settrain
