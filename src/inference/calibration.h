// Rules calibrated on some images and judged on others.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "metrics/sets/set_quality.h"
#include "metrics/split_scores.h"
#include "src/plot/chart.h"

namespace settrain {

struct CalibrationRequest {
  std::vector<SetRule> rules = {};
  std::optional<double> share = {};  // this share of the calibration images calibrates, the others judge
  bool fit_temperature = false;      // on a fifth of the calibration images, which then do not calibrate rules
  double temperature = 1;            // where none is fitted
  std::string no_guarantee = {};     // why the rules have no guarantee; empty where they have one
  bool by_alpha = false;             // fill JudgedRule::by_alpha
  uint64_t seed = 1;                 // of all random numbers
};

/// Coverage and mean set size of a conformal rule that is calibrated for another alpha.
struct AlphaPoint {
  double alpha, coverage, mean_size;
};

struct JudgedRule {
  CalibratedRule rule;
  SetQuality quality;
  std::vector<AlphaPoint> by_alpha = {};  // for conformal rules, with CalibrationRequest::by_alpha
};

struct Calibration {
  ClassFacts facts;
  double temperature = 1;
  int64_t temperature_images = 0;     // set apart for its fit, also where the fit is refused; 0: it was given
  std::string temperature_refused{};  // why the fit was refused, so that the temperature stays 1; empty: it was not
  double calibration_top1 = 0, judged_top1 = 0;  // top-1 accuracy of the images that calibrate, and of those that judge
  double error_before = 0, error_after = 0;  // expected calibration error of the images that judge, without and with
                                             // the temperature; NaN for sigmoids
  SplitScores calibration{}, judged{};       // divided by the temperature; without the images that fitted it
  std::string calibrated_on{}, judged_on{};  // phrases: "1000 images of val"
  std::vector<JudgedRule> rules{};           // with a note where most sets of a rule are full or empty
  std::vector<std::string> warnings{};       // sentences: reasons to doubt the results, and remedies
};

/// The default rules: one of each kind that suits the classes.
std::vector<SetRule> usual_rules(const ClassFacts& facts);

/// `judged`: the images that judge; null where the request has a share. The names tell users which images these are:
/// "val", "calibration.npz". Images of a refused fit of the temperature do not calibrate either, since the refusal
/// depends on them. Throws ConfigError where a rule does not suit the classes, or a part of the images would be empty.
Calibration calibrate_and_judge(const CalibrationRequest& request, const ClassFacts& facts,
                                const SplitScores& calibration, const std::string& calibration_name,
                                const SplitScores* judged, const std::string& judged_name);

/// Tables for people, with warnings, and each rule's guarantee and notes.
std::string format_calibration(const Calibration& calibration);

/// The numbers of format_calibration() in full precision, and the coverage of every class; undefined numbers are null.
nlohmann::ordered_json calibration_json(const Calibration& calibration);

/// For the conformal rules: coverage of every class against its training images, and JudgedRule::by_alpha.
Chart calibration_chart(const Calibration& calibration);

}  // namespace settrain
