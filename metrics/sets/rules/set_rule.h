// The name of a rule by which scores become sets: "top:5", "error:0.1",
// "conformal:raps(lambda=0.01,k=5):0.1:classwise".
#pragma once

#include <cstdint>
#include <string>

namespace settrain {

/// Defaults of raps, as in the implementations of Ding et al. (2023, 2025).
inline constexpr double kRapsLambda = 0.01;
inline constexpr int64_t kRapsK = 5;
/// Default of saps, as in TorchCP, the implementation by the authors of Huang et al. 2024.
inline constexpr double kSapsLambda = 0.2;

/// An answer has at most so many nodes of a taxonomy: their best choice takes time that grows with the cube.
inline constexpr int64_t kMostAnswerNodes = 32;

/// How well a class suits an image by a conformal score; smaller is better (metrics/sets/calibrate.h has the formulas).
enum class ConformalScore { kLac, kAps, kRaps, kSaps, kPas, kWpas, kTree, kRisk };

/// Whether a score depends on the order of the classes, and on probabilities that sum to 1.
inline bool is_ranked(ConformalScore score) {
  return score == ConformalScore::kAps || score == ConformalScore::kRaps || score == ConformalScore::kSaps ||
         score == ConformalScore::kTree;
}

/// Whether a score may be randomised: it then depends on a number u that is drawn for each image.
inline bool can_be_randomised(ConformalScore score) {
  return is_ranked(score) && score != ConformalScore::kTree;
}

/// The calibration images that set a class' threshold.
enum class ConformalThreshold {
  kMarginal,      // all
  kClasswise,     // the class' own
  kSuperclass,    // those of its superclass
  kInterpolated,  // between its own and all
  kRc3p,          // its own, with a limit to its rank
  kClustered,     // those of classes with scores alike
  kFuzzy,         // all, weighted by how alike the numbers of training images are
};

/// The aim with which lambda and k of raps are chosen on a part of the calibration images.
enum class RapsTuning { kNone, kSize, kStrata };

struct SetRule {
  enum class Kind { kTop, kAverage, kError, kAverageError, kConformal };

  Kind kind = Kind::kTop;
  double level = 0;  // K of top and average; E of error and average-error; alpha of conformal

  // Conformal rules alone have these.
  ConformalScore score = ConformalScore::kLac;
  bool randomised = false;                // aps, raps, saps: u is drawn for each image
  double lambda = 0;                      // raps, saps
  int64_t k = 0;                          // raps
  RapsTuning tuning = RapsTuning::kNone;  // raps; other than none: lambda and k are the defaults, and not used
  std::string weights = {};               // wpas: a file of class weights, as class tables have them
  int64_t nodes = 0;                      // tree: at most so many nodes of the taxonomy make an answer
  bool nonempty = false;                  // the most probable class joins a set that would be empty
  ConformalThreshold threshold = ConformalThreshold::kMarginal;
  double tau = 0;        // interpolated
  double sigma = 0;      // fuzzy
  int64_t clusters = 0;  // clustered; 0: chosen from the data
  double share = 0;  // clustered, fuzzy: of the calibration images, for what is not the last quantile; 0: the paper's

  /// Whether it is about all labels of an image: conformal:risk.
  bool takes_label_sets() const { return kind == Kind::kConformal && score == ConformalScore::kRisk; }

  /// The coverage that a rule with an error aims at: 1 - alpha, or 1 - E; NaN for the others.
  double wanted_coverage() const;

  /// The name with every parameter that is not the default's: parse_set_rule() of it gives the same rule.
  std::string name() const;
  bool operator==(const SetRule&) const = default;
};

/// Throws ConfigError that quotes the text, says which part is wrong, and what could stand there.
SetRule parse_set_rule(const std::string& text);

}  // namespace settrain
