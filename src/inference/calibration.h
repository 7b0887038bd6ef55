// Rules calibrated on some images and judged on others.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sets/rules/stored_rules.h"
#include "metrics/sets/set_quality.h"
#include "metrics/split_scores.h"
#include "src/plot/chart.h"

namespace settrain {

/// A place to calibrate rules for.
struct PlaceRequest {
  std::string name, source;        // as of CalibratedPlace
  std::vector<double> prior = {};  // [classes] the classes' shares there, which sum to 1; or empty: they are estimated
  at::Tensor unlabelled = {};      // [images, classes] the scores of pictures of the place, for the estimate
};

struct CalibrationRequest {
  std::vector<SetRule> rules = {};
  std::optional<double> share = {};  // this share of the calibration images calibrates, the others judge
  bool fit_temperature = false;      // on a fifth of the calibration images, which then do not calibrate rules
  double efficient_alpha = 0;        // above 0: the temperature is efficient_temperature() by images of that fifth
  double temperature = 1;            // where none is fitted
  std::string no_guarantee = {};     // why the rules have no guarantee; empty where they have one
  bool by_alpha = false;             // fill JudgedRule::by_alpha
  std::vector<PlaceRequest> places = {};
  std::vector<double> of_model = {};  // [classes] the shares that the model's softmax assumes; for places
  uint64_t seed = 1;                  // of all random numbers

  bool sets_temperature() const { return fit_temperature || efficient_alpha > 0; }
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

/// A rule at a place: means over the images that judge, each weighted by its class' share at the place over that among
/// these images.
struct PlaceQuality {
  std::string rule;
  double coverage = 0, mean_size = 0;              // of the rule as it was calibrated for the place
  double plain_coverage = 0, plain_mean_size = 0;  // of the rule of the same name for no place
};

struct JudgedPlace {
  CalibratedPlace place;
  std::vector<double> by_confusion = {};  // [classes] a second estimate (shares_by_confusion()); empty without one
  double judging_images = 0;              // the effective number of the images that judge
  std::vector<PlaceQuality> quality = {};
  std::vector<std::string> notes = {};
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
  std::vector<JudgedPlace> places{};
  std::vector<JudgedRule> rules{};      // with a note where most sets of a rule are full or empty
  std::vector<std::string> warnings{};  // sentences: reasons to doubt the results, and remedies
};

/// The default rules: one of each kind that suits the classes.
std::vector<SetRule> usual_rules(const ClassFacts& facts);

/// `judged`: the images that judge; null where the request has a share. The names tell users which images these are:
/// "val", "calibration.npz". A fifth of the calibration images is set apart where a temperature is fitted or a place's
/// shares are estimated. Images of a refused fit of the temperature do not calibrate either, since the refusal
/// depends on them. Throws ConfigError where a rule does not suit the classes, or a part of the images would be empty.
Calibration calibrate_and_judge(const CalibrationRequest& request, const ClassFacts& facts,
                                const SplitScores& calibration, const std::string& calibration_name,
                                const SplitScores* judged, const std::string& judged_name);

/// Calibrates the request's rules for a place, and judges them on the images that judge. `on` has the images, and the
/// rules for no place. `apart`: labelled images that calibrate no rule, divided by the temperature; for estimates.
/// Throws ConfigError where no rule can be one for a place, and where shares cannot be estimated.
JudgedPlace calibrate_place(const PlaceRequest& place, const CalibrationRequest& request, const Calibration& on,
                            const SplitScores& apart);

/// The table of the places.
std::string format_places(const Calibration& calibration);
nlohmann::ordered_json places_json(const Calibration& calibration);

/// Tables for people, with warnings, and each rule's guarantee and notes.
std::string format_calibration(const Calibration& calibration);

/// The numbers of format_calibration() in full precision, and the coverage of every class; undefined numbers are null.
nlohmann::ordered_json calibration_json(const Calibration& calibration);

/// For the conformal rules: coverage of every class against its training images, and JudgedRule::by_alpha.
Chart calibration_chart(const Calibration& calibration);

}  // namespace settrain
