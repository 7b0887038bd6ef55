// Judges feature vectors by simple classifiers: trained on some images, they answer on others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/feature_table.h"
#include "src/core/progress_bar.h"
#include "src/probe/nearest.h"

namespace settrain {

struct ProbeOptions {
  int64_t neighbours = 20;  // at most the number of training images is taken
  Distance distance = Distance::kEuclidean;
  bool to_unit_length = false;                   // divides every feature vector by its length first
  std::vector<double> c{0.01, 0.1, 1, 10, 100};  // of logistic regression, see LogisticObjective; above 0
};

/// Features of one width and of classes that are numbered alike.
struct ProbeData {
  LabelledFeatures train, test;
  std::optional<LabelledFeatures> val;
  int64_t classes = 0;  // labels are below it
};

/// The rows of `table` with their labels, [images], in memory. Throws DataError, which begins with `place`, where a
/// number is too large for squares in float32.
LabelledFeatures labelled_features(const FeatureTable& table, const std::vector<int64_t>& labels,
                                   const std::string& place);

/// Reads feature files (datasets/feature_file.h); `val` may be empty. Throws ConfigError where they do not belong
/// together: other widths, other names of classes, features of other weights, or one file twice; DataError where labels
/// are missing, or where numbers are too large for squares in float32.
ProbeData read_probe_data(const std::filesystem::path& train, const std::filesystem::path& test,
                          const std::filesystem::path& val);

/// A classifier's accuracies on the test images, from 0 to 1. Ties go to the lower class.
struct ProbeResult {
  std::string name;   // "nearest_neighbour", "neighbours", "class_means", "logistic"; "head" of the program
  std::string title;  // "20 nearest neighbours"
  double top1 = 0, macro_top1 = 0;
  double top5 = 0;     // NaN for the nearest neighbour, which names one class
  double seconds = 0;  // NaN where it shared the search of the result before it
};

/// The accuracies of scores [images, classes] float on the CPU, by labels [images].
ProbeResult judged_scores(std::string name, std::string title, const at::Tensor& scores, const at::Tensor& labels,
                          double seconds);

/// The choice of logistic regression's C. It maximises the top-1 accuracy on images that are neither trained on nor
/// test images; of equal ones the smallest is taken.
struct ChosenC {
  double c = 0;
  bool on_val = false;           // on the validation images; else on a tenth of the training images
  std::vector<double> tried;     // ascending; just `c` where there was no choice
  std::vector<double> accuracy;  // of `tried`; empty where there was no choice
  double objective = 0;          // of the classifier that was judged, which was fitted to all training images
  bool has_converged = true;
};

struct ProbeReport {
  std::vector<ProbeResult> results;
  ChosenC logistic;
};

/// Throws DataError where the training images are of one class, or where there are too few to choose C without
/// validation images, and Interrupted.
ProbeReport probe_features(ProbeData data, const ProbeOptions& options, ProgressBar& bar);

/// A table for people, and sentences on C below it. Every line ends in a newline.
std::string format_probe(const ProbeReport& report);

nlohmann::json probe_json(const ProbeReport& report);

}  // namespace settrain
