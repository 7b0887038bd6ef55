#include "src/inference/calibration.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/temperature.h"
#include "src/core/error.h"
#include "src/core/permutation.h"

namespace settrain {
namespace {

constexpr int64_t kTemperatureShare = 5;  // one image in five
constexpr std::array<double, 8> kAlphas{0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01};

SplitScores on_cpu(const SplitScores& scores) {
  return {scores.scores.cpu(), scores.labels.cpu()};
}

SetQuality judge(const CalibratedRule& rule, const Calibration& on) {
  return set_quality(sets_of(rule, on.judged.scores), on.judged.labels, rule.rule.wanted_coverage(),
                     on.facts.train_counts);
}

std::vector<AlphaPoint> by_alpha(SetRule rule, const Calibration& on, uint64_t seed) {
  std::vector<AlphaPoint> points;
  for (const double alpha : kAlphas) {
    rule.level = alpha;
    const SetQuality quality = judge(calibrate(rule, on.facts, on.calibration.scores, on.calibration.labels, seed), on);
    points.push_back({alpha, quality.coverage, quality.mean_size});
  }
  return points;
}

std::string images_phrase(int64_t images, const std::string& name) {
  return fmt::format("{} image{} of {}", images, images == 1 ? "" : "s", name);
}

}  // namespace

std::vector<SetRule> usual_rules(const ClassFacts& facts) {
  std::vector<std::string> names;
  if (facts.classes > 5) names = {"top:5", "average:5"};
  const bool is_softmax = facts.probability == ProbabilityKind::kSoftmax;
  if (is_softmax) names.emplace_back("error:0.1");
  names.insert(names.end(), {"average-error:0.1", "conformal:lac:0.1"});
  if (is_softmax) names.emplace_back("conformal:aps:0.1");
  if (!facts.train_counts.empty()) names.emplace_back("conformal:pas:0.1");
  names.emplace_back("conformal:lac:0.1:classwise");
  std::vector<SetRule> rules;
  for (const std::string& name : names) rules.push_back(parse_set_rule(name));
  return rules;
}

Calibration calibrate_and_judge(const CalibrationRequest& request, const ClassFacts& facts, const SplitScores& given,
                                const std::string& calibration_name, const SplitScores* judged,
                                const std::string& judged_name) {
  const bool is_softmax = facts.probability == ProbabilityKind::kSoftmax;
  if (request.fit_temperature && !is_softmax) {
    throw ConfigError("a temperature is fitted to the probabilities of a softmax, and these are of sigmoids");
  }
  const auto calibration_error = [is_softmax](const SplitScores& scores) {
    return is_softmax ? expected_calibration_error(scores.scores, scores.labels)
                      : std::numeric_limits<double>::quiet_NaN();
  };
  const SplitScores all = on_cpu(given);
  const int64_t images = all.scores.size(0);
  const std::vector<int64_t> order = permutation(images, request.seed, Stream::kCalibration, /*step=*/2);
  const std::span<const int64_t> drawn(order);
  const int64_t fitting = request.fit_temperature ? images / kTemperatureShare : 0;
  const double share = request.share.value_or(1.0);
  const auto calibrating = static_cast<int64_t>(std::llround(share * static_cast<double>(images - fitting)));
  if (calibrating == 0 || (request.fit_temperature && fitting == 0) ||
      (request.share && calibrating == images - fitting)) {
    throw ConfigError(
        fmt::format("the {} of {} are too few to divide", images_phrase(images, "calibration"), calibration_name));
  }

  Calibration result{.facts = facts, .temperature = request.temperature, .temperature_images = fitting};
  const auto part = [&](int64_t begin, int64_t count) {
    return samples_of(all, drawn.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)));
  };
  // As given where all of them calibrate, so that the numbers of images, which random rules draw by, are those of the
  // file.
  result.calibration = calibrating == images ? all : part(fitting, calibrating);
  result.judged = judged ? on_cpu(*judged) : part(fitting + calibrating, images - fitting - calibrating);
  result.calibrated_on = images_phrase(calibrating, calibration_name);
  result.judged_on = images_phrase(result.judged.scores.size(0), judged ? judged_name : calibration_name);
  if (request.fit_temperature) {
    const SplitScores fit = part(0, fitting);
    result.temperature = fit_temperature(fit.scores, fit.labels);
  }
  result.error_before = calibration_error(result.judged);
  result.calibration.scores = result.calibration.scores.div(result.temperature);
  result.judged.scores = result.judged.scores.div(result.temperature);
  result.error_after = calibration_error(result.judged);

  for (const SetRule& rule : request.rules) {
    JudgedRule done;
    done.rule = calibrate(rule, facts, result.calibration.scores, result.calibration.labels, request.seed);
    if (!request.no_guarantee.empty() && done.rule.images > 0)
      done.rule.guarantee = "no guarantee: " + request.no_guarantee;
    done.quality = judge(done.rule, result);
    if (request.by_alpha && rule.kind == SetRule::Kind::kConformal)
      done.by_alpha = by_alpha(rule, result, request.seed);
    result.rules.push_back(std::move(done));
  }
  return result;
}

}  // namespace settrain
