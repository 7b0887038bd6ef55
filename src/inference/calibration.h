// Rules calibrated on some images and judged on others.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sets/set_quality.h"
#include "src/inference/score_file.h"
#include "src/plot/chart.h"

namespace settrain {

struct CalibrationRequest {
  std::vector<SetRule> rules = {};
  std::optional<double> share = {};  // of the calibration images, to calibrate on; the others judge
  bool fit_temperature = false;      // on a fifth of the calibration images, which then do not calibrate rules
  double temperature = 1;            // where none is fitted
  std::string no_guarantee = {};     // why none holds; empty where one does
  bool by_alpha = false;             // fill JudgedRule::by_alpha
  uint64_t seed = 1;                 // of what is drawn
};

/// What a conformal rule comes to where it is calibrated for another alpha.
struct AlphaPoint {
  double alpha, coverage, mean_size;
};

struct JudgedRule {
  CalibratedRule rule;
  SetQuality quality;
  std::vector<AlphaPoint> by_alpha = {};  // of conformal rules, where it was asked for
};

struct Calibration {
  ClassFacts facts;
  double temperature = 1;
  int64_t temperature_images = 0;     // kept for its fit, taken or refused; 0: it was given
  std::string temperature_refused{};  // why the fit was refused, and the temperature stayed 1; empty where it was not
  double calibration_top1 = 0, judged_top1 = 0;  // top-1 accuracy of the images that calibrate, and of those that judge
  double error_before = 0,
         error_after = 0;  // expected calibration error of the judged images, without and with it; NaN of sigmoids
  SplitScores calibration{}, judged{};       // after the temperature; without the images that fitted it
  std::string calibrated_on{}, judged_on{};  // phrases: "1000 images of val"
  std::vector<JudgedRule> rules{};           // a note says so where most sets of a rule are full or empty
  std::vector<std::string> warnings{};       // sentences: what makes the above doubtful, and what helps
};

/// What is calibrated where nothing is said: a rule of each kind that suits the classes.
std::vector<SetRule> usual_rules(const ClassFacts& facts);

/// `judged`: the images that judge; none where the request has a share. The names say what images they are: "val",
/// "calibration.npz". Where the fit of the temperature is refused, the images that it had still do not calibrate: the
/// refusal depends on them. Throws ConfigError where a rule does not suit the classes, or a part of the images would be
/// empty.
Calibration calibrate_and_judge(const CalibrationRequest& request, const ClassFacts& facts,
                                const SplitScores& calibration, const std::string& calibration_name,
                                const SplitScores* judged, const std::string& judged_name);

/// Tables for people, with warnings, and each rule's guarantee and notes.
std::string format_calibration(const Calibration& calibration);

/// Everything: by rule what format_calibration() shows, in full precision, and the coverage of every class; null where
/// a number is undefined.
nlohmann::ordered_json calibration_json(const Calibration& calibration);

/// Of the conformal rules: coverage of every class against its training images, and JudgedRule::by_alpha.
Chart calibration_chart(const Calibration& calibration);

}  // namespace settrain
