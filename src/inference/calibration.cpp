#include "src/inference/calibration.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "metrics/label_rank.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/temperature.h"
#include "src/core/error.h"
#include "src/core/random.h"

namespace settrain {
namespace {

constexpr int64_t kApartShare = 5;          // one image in five, for a temperature and estimates of shares
constexpr int64_t kImagesForAccuracy = 30;  // with fewer, an accuracy cannot be told from guessing
constexpr std::array<double, 8> kAlphas{0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01};

SplitScores on_cpu(const SplitScores& scores) {
  return {scores.scores.cpu(), scores.labels.cpu(),
          scores.label_sets.defined() ? scores.label_sets.cpu() : at::Tensor()};
}

SetQuality judge(const CalibratedRule& rule, const Calibration& on, const Taxonomy& taxonomy = {}) {
  return set_quality(sets_of(rule, on.judged.scores), labels_for(rule.rule, on.judged), rule.rule.wanted_coverage(),
                     on.facts.train_counts, taxonomy);
}

std::vector<AlphaPoint> by_alpha(SetRule rule, const Calibration& on, uint64_t seed) {
  std::vector<AlphaPoint> points;
  for (const double alpha : kAlphas) {
    rule.level = alpha;
    const SetQuality quality =
        judge(calibrate(rule, on.facts, on.calibration.scores, labels_for(rule, on.calibration), seed), on);
    points.push_back({alpha, quality.coverage, quality.mean_size});
  }
  return points;
}

std::string images_phrase(int64_t images, const std::string& name) {
  return fmt::format("{} image{} of {}", images, images == 1 ? "" : "s", name);
}

// Fits a temperature to the scores of `fit`. It stays 1 where the fit is refused.
void set_temperature(const CalibrationRequest& request, Calibration& result, const SplitScores& fit,
                     const std::string& name) {
  if (request.efficient_alpha > 0) {
    const int64_t images = fit.labels.size(0), half = images / 2;
    const SplitScores first{fit.scores.narrow(0, 0, half), fit.labels.narrow(0, 0, half)},
        second{fit.scores.narrow(0, half, images - half), fit.labels.narrow(0, half, images - half)};
    result.temperature = efficient_temperature(first, second, request.efficient_alpha);
    constexpr double kNear = 1.001;
    if (result.temperature < kLeastEfficient * kNear) {
      result.warnings.push_back(fmt::format(
          "the temperature {:g} is the least that confts tries, and smaller ones would come next: compare the sets with "
          "those of --temperature fit",
          kLeastEfficient));
    }
    return;
  }
  const std::string images = images_phrase(fit.scores.size(0), name);
  TemperatureFit fitted = fit_temperature(fit.scores, fit.labels);
  result.temperature = fitted.temperature;
  result.temperature_refused = std::move(fitted.refused);
  if (!result.temperature_refused.empty()) {
    result.warnings.push_back(
        fmt::format("the temperature stays 1, for a fit to {} is refused: {}", images, result.temperature_refused));
  } else if (fit.scores.size(0) < kImagesForTemperature) {
    result.warnings.push_back(
        fmt::format("the temperature {:.4g} is fitted to {} only; with fewer than {} it depends on which images these "
                    "are, and more calibration images help",
                    result.temperature, images, kImagesForTemperature));
  }
}

// Hashes of an image's label and scores in float32, for each image.
std::vector<size_t> hashes_of(const SplitScores& images) {
  const at::Tensor scores = images.scores.to(at::kFloat).contiguous(), labels = images.labels.contiguous();
  const auto row_bytes = static_cast<size_t>(scores.size(1) * scores.element_size());
  const auto* row = static_cast<const char*>(scores.const_data_ptr());
  std::vector<size_t> hashes;
  for (int64_t i = 0; i < scores.size(0); ++i, row += row_bytes) {
    const std::string key = std::to_string(labels.const_data_ptr<int64_t>()[i]) + " " + std::string(row, row_bytes);
    hashes.push_back(std::hash<std::string>()(key));
  }
  return hashes;
}

// Whether the largest scores of images with different rows of scores differ, too, in 99 of 100. Rounded scores and
// saturated probabilities do not: rows of them may be equal by chance.
bool tells_images_apart(const SplitScores& images, const std::vector<size_t>& hashes) {
  constexpr size_t kRows = 20'000;  // more of them would have equal float32 by chance
  const at::Tensor largest = images.scores.amax(1).to(at::kDouble).contiguous();
  std::unordered_set<size_t> rows;
  std::unordered_set<double> values;
  for (size_t i = 0; i < hashes.size() && rows.size() < kRows; ++i) {
    if (rows.insert(hashes[i]).second) values.insert(largest.const_data_ptr<double>()[i]);
  }
  return std::ssize(values) * 100 >= std::ssize(rows) * 99;
}

// A reason to suspect that some images both calibrate and judge: their scores and labels are equal in float32. Empty
// where there is none, or where scores are rounded so that calibration images already share theirs.
std::string why_same_images(const Calibration& result) {
  constexpr int64_t kOneInHundred = 100;
  const std::vector<size_t> hashes = hashes_of(result.calibration);
  const std::unordered_set<size_t> calibrating(hashes.begin(), hashes.end());
  const bool are_shared = std::ssize(hashes) - std::ssize(calibrating) > std::ssize(hashes) / kOneInHundred;
  if (are_shared && !tells_images_apart(result.calibration, hashes)) return {};
  const std::vector<size_t> judging = hashes_of(result.judged);
  const auto same = std::ranges::count_if(judging, [&](size_t hash) { return calibrating.contains(hash); });
  if (same == 0 || same < std::ssize(judging) / kOneInHundred) return {};
  return fmt::format(
      "{} of the {} images that judge have the very scores of images that calibrate, so they seem to be "
      "the same images",
      same, judging.size());
}

double top1_accuracy(const SplitScores& scores) {
  return label_ranks(scores.scores, scores.labels).eq(0).mean(at::kDouble).item<double>();
}

// The share plus `errors` of its standard errors over that many images.
double clearly_above(double share, int64_t images, double errors) {
  return share + errors * std::sqrt(share * (1 - share) / static_cast<double>(images));
}

// " With every label smaller by 1 it would be 93.1 %.", or an empty text where such a shift does not help.
std::string shift_of_labels(const SplitScores& scores) {
  const at::Tensor answers = scores.scores.argmax(1);
  const int64_t images = answers.size(0);
  // The best accuracy of one answer for all images.
  const double commonest = scores.labels.bincount().max().item<double>() / static_cast<double>(images);
  for (const auto& [shift, word] : {std::pair(-1, "smaller"), std::pair(1, "larger")}) {
    const double share = answers.eq(scores.labels + shift).mean(at::kDouble).item<double>();
    if (share > clearly_above(commonest, images, /*errors=*/5)) {
      return fmt::format(" With every label {} by 1 it would be {:.1f} %.", word, 100 * share);
    }
  }
  return "";
}

// Warns of an accuracy like that of guessing. Labels that are off by one, or in another order than the scores, cause
// it.
void compare_with_guessing(Calibration& result) {
  const double chance = 1 / static_cast<double>(result.facts.classes);
  std::string where, shift;
  for (const auto& [scores, top1, phrase] :
       {std::tie(result.calibration, result.calibration_top1, result.calibrated_on),
        std::tie(result.judged, result.judged_top1, result.judged_on)}) {
    const int64_t images = scores.scores.size(0);
    if (result.facts.classes < 2 || images < kImagesForAccuracy || top1 > clearly_above(chance, images, /*errors=*/2)) {
      continue;
    }
    where += fmt::format("{}{:.1f} % on {}", where.empty() ? "" : " and ", 100 * top1, phrase);
    if (shift.empty()) shift = shift_of_labels(scores);
  }
  if (where.empty()) return;
  result.warnings.push_back(
      fmt::format("top-1 accuracy is {}, not clearly above the {:.2g} % of guessing: is the model trained, and are the "
                  "labels counted from 0, in the order of the scores' columns?{}",
                  where, 100 * chance, shift));
}

// Warns of labels that are all of one class.
void warn_of_one_class(Calibration& result) {
  const at::Tensor& labels = result.calibration.labels;
  const auto label = labels[0].item<int64_t>();
  if (labels.ne(label).any().item<bool>()) return;
  const int64_t classes = result.facts.classes;
  result.warnings.push_back(
      classes == 1
          ? "there is one column of scores, so one class, and every set that is not empty is right. If these are scores "
            "of class 1 of two, put a column of zeros before them"
          : fmt::format("{} have one label only, {}, of {} classes: nothing is learnt about the others",
                        result.calibrated_on, label, classes));
}

// Advice that makes the sets of a rule smaller than all classes.
std::string help_where_full(const CalibratedRule& calibrated) {
  const SetRule& rule = calibrated.rule;
  if (rule.kind == SetRule::Kind::kAverage) return "a smaller K helps, unless the scores are equal";
  if (rule.kind == SetRule::Kind::kError) return "a larger E helps, or --temperature fit";
  if (rule.kind == SetRule::Kind::kAverageError) return "a larger E helps, or a better model";
  const bool has_few = std::any_of(calibrated.thresholds.begin(), calibrated.thresholds.end(),
                                   [](const DoubleDouble& threshold) { return std::isinf(threshold.high); });
  return fmt::format("the threshold is beyond nearly all classes; a larger alpha helps, {}{}or a better model",
                     has_few ? "more calibration images, " : "",
                     can_be_randomised(rule.score) && !rule.randomised ? "randomised=true, " : "");
}

// Advice that leaves fewer images without a class. `top1` is the model's accuracy on them.
std::string help_where_empty(const CalibratedRule& calibrated, const SetQuality& quality, double top1) {
  const SetRule& rule = calibrated.rule;
  const double wanted = rule.wanted_coverage();
  if (std::isnan(wanted)) return "a larger K helps";
  if (quality.interval[1] < wanted) {
    return fmt::format(
        "the sets hold {:.1f} % of the labels, and {:g} % are wanted; are the images that judge like the {} that "
        "calibrate, and are these enough?",
        100 * quality.coverage, 100 * wanted, calibrated.images);
  }
  const bool is_conformal = rule.kind == SetRule::Kind::kConformal;
  const char* name = is_conformal ? "alpha" : "E";
  return fmt::format("{} is {:g}, and the model's top-1 error {:.3g}; a smaller {} helps{}", name, rule.level, 1 - top1,
                     name, is_conformal ? ", and nonempty=true puts the most probable class into empty sets" : "");
}

// Adds notes where most sets are full or empty, since such sets tell users nothing.
void note_sets_without_use(CalibratedRule& calibrated, const SetQuality& quality, double top1) {
  constexpr double kMost = 0.5;
  // The user chooses the size of top:K. Where the threshold is the largest score, calibrate() has added a note.
  if (calibrated.rule.kind == SetRule::Kind::kTop || calibrated.classes < 2) return;
  const bool is_known = calibrated.rule.kind == SetRule::Kind::kConformal && calibrated.thresholds.size() == 1 &&
                        calibrated.thresholds.front() == DoubleDouble();
  if (quality.full > kMost && !is_known) {
    calibrated.notes.push_back(fmt::format("{:.1f} % of the sets have all {} classes: {}", 100 * quality.full,
                                           calibrated.classes, help_where_full(calibrated)));
  }
  if (quality.empty > kMost) {
    calibrated.notes.push_back(fmt::format("{:.1f} % of the sets are empty: {}", 100 * quality.empty,
                                           help_where_empty(calibrated, quality, top1)));
  }
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
  if (request.sets_temperature() && !is_softmax) {
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
  const bool estimates = std::ranges::any_of(request.places, [](const auto& place) { return place.prior.empty(); });
  const int64_t fitting = request.sets_temperature() || estimates ? images / kApartShare : 0;
  const double share = request.share.value_or(1.0);
  const auto calibrating = static_cast<int64_t>(std::llround(share * static_cast<double>(images - fitting)));
  if (calibrating == 0 || ((request.sets_temperature() || estimates) && fitting == 0) ||
      (request.share && calibrating == images - fitting)) {
    throw ConfigError(fmt::format("the {} are too few to divide", images_phrase(images, calibration_name)));
  }

  Calibration result{.facts = facts,
                     .temperature = request.temperature,
                     .temperature_images = request.sets_temperature() ? fitting : 0};
  const auto part = [&](int64_t begin, int64_t count) {
    return samples_of(all, drawn.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)));
  };
  // The order stays as given where all images calibrate: randomised rules draw by an image's number in the file.
  result.calibration = calibrating == images ? all : part(fitting, calibrating);
  result.judged = judged ? on_cpu(*judged) : part(fitting + calibrating, images - fitting - calibrating);
  result.calibrated_on = images_phrase(calibrating, calibration_name);
  result.judged_on = images_phrase(result.judged.scores.size(0), judged ? judged_name : calibration_name);
  if (request.sets_temperature()) set_temperature(request, result, part(0, fitting), calibration_name);
  result.calibration_top1 = top1_accuracy(result.calibration);
  result.judged_top1 = top1_accuracy(result.judged);
  compare_with_guessing(result);
  warn_of_one_class(result);
  std::string no_guarantee = request.no_guarantee;
  if (const std::string same = why_same_images(result); !same.empty()) {
    result.warnings.push_back(same);
    if (no_guarantee.empty()) no_guarantee = same;
  }
  result.error_before = calibration_error(result.judged);
  result.calibration.scores = at_temperature(result.calibration.scores, result.temperature);
  result.judged.scores = at_temperature(result.judged.scores, result.temperature);
  result.error_after = calibration_error(result.judged);

  for (const SetRule& rule : request.rules) {
    JudgedRule done;
    done.rule = calibrate(rule, facts, result.calibration.scores, labels_for(rule, result.calibration), request.seed);
    if (!no_guarantee.empty() && done.rule.images > 0) done.rule.guarantee = "no guarantee: " + no_guarantee;
    done.quality = judge(done.rule, result, facts.taxonomy);
    note_sets_without_use(done.rule, done.quality, result.judged_top1);
    if (request.by_alpha && rule.kind == SetRule::Kind::kConformal)
      done.by_alpha = by_alpha(rule, result, request.seed);
    result.rules.push_back(std::move(done));
  }
  SplitScores apart;
  if (fitting > 0) {
    apart = part(0, fitting);
    apart.scores = at_temperature(apart.scores, result.temperature);
  }
  for (const PlaceRequest& place : request.places) {
    result.places.push_back(calibrate_place(place, request, result, apart));
    if (no_guarantee.empty()) continue;
    for (CalibratedRule& rule : result.places.back().place.rules) {
      if (rule.images > 0) rule.guarantee = "no guarantee: " + no_guarantee;
    }
  }
  return result;
}

}  // namespace settrain
