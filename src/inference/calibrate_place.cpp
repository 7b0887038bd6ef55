// Rules for places, in `settrain calibrate`: calibrating, judging and showing them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/label_shift.h"
#include "metrics/sets/p_values.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/temperature.h"
#include "src/core/error.h"
#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/inference/answer_place.h"
#include "src/inference/calibration.h"

namespace settrain {
namespace {

at::Tensor tensor_of(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kDouble);
}

// [images] float64: the share of each image's class at the place, divided by that among these images.
at::Tensor judging_weights(const at::Tensor& labels, const std::vector<double>& prior) {
  const at::Tensor counts = at::bincount(labels, {}, std::ssize(prior)).to(at::kDouble);
  return tensor_of(prior).div(counts.div(static_cast<double>(labels.size(0)))).index_select(0, labels);
}

double weighted_mean(const at::Tensor& values, const at::Tensor& weights) {
  return values.to(at::kDouble).mul(weights).sum().item<double>() / weights.sum().item<double>();
}

PlaceQuality judged_at(const CalibratedRule& rule, const CalibratedRule& plain, const at::Tensor& corrected,
                       const SplitScores& judged, const at::Tensor& occurs, const at::Tensor& weights) {
  const at::Tensor label = judged.labels.unsqueeze(1);
  const auto holds = [&](const at::Tensor& sets) { return weighted_mean(sets.gather(1, label).squeeze(1), weights); };
  const at::Tensor sets = sets_of(rule, corrected).logical_and(occurs), without = sets_of(plain, judged.scores);
  return {rule.rule.name(), holds(sets), weighted_mean(sets.sum(1), weights), holds(without),
          weighted_mean(without.sum(1), weights)};
}

// Estimates the shares of the classes among the place's pictures.
void estimate_shares(const PlaceRequest& request, const CalibrationRequest& whole, const Calibration& on,
                     const SplitScores& apart, JudgedPlace& result) {
  const at::Tensor scores = at_temperature(request.unlabelled, on.temperature);
  result.place.prior = shares_by_likelihood(probabilities_of(scores, ProbabilityKind::kSoftmax), whole.of_model);
  result.by_confusion = shares_by_confusion(apart.scores, apart.labels, scores);
  if (result.by_confusion.empty()) result.notes.emplace_back("BBSE has no estimate: none of its shares is above 0");
  const at::Tensor found = at::bincount(apart.labels, {}, apart.scores.size(1));
  if (const int64_t without = found.eq(0).sum().item<int64_t>()) {
    result.notes.push_back(fmt::format("BBSE knows nothing of {} classes, which none of its {} labelled images has",
                                       without, apart.labels.size(0)));
  }
}

// The shares of a place as a table, largest first.
std::string table_of_shares(const JudgedPlace& judged, const Calibration& calibration) {
  constexpr size_t kShown = 10;
  const std::vector<double>& prior = judged.place.prior;
  std::vector<size_t> order(prior.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t c) { return prior[c]; });
  std::vector<std::vector<std::string>> rows;
  for (const size_t c : std::span(order).first(std::min(kShown, order.size()))) {
    const auto& names = calibration.facts.names;
    rows.push_back({names.empty() ? std::to_string(c) : printable(names[c]), fmt::format("{:.2f}", 100 * prior[c]),
                    judged.by_confusion.empty() ? "-" : fmt::format("{:.2f}", 100 * judged.by_confusion[c])});
  }
  return markdown_table({"class", "EM, %", "BBSE, %"}, rows) +
         (order.size() > kShown ? fmt::format("(and {} more classes)\n", order.size() - kShown) : "");
}

}  // namespace

JudgedPlace calibrate_place(const PlaceRequest& place, const CalibrationRequest& request, const Calibration& on,
                            const SplitScores& apart) {
  JudgedPlace result{.place = {.name = place.name, .source = place.source, .prior = place.prior, .offsets = {}}};
  if (place.prior.empty()) estimate_shares(place, request, on, apart, result);
  CalibratedPlace& made = result.place;
  made.offsets = score_offsets(made.prior, request.of_model);

  const at::Tensor known = with_offsets(on.calibration.scores, made.offsets);
  const at::Tensor corrected = with_offsets(on.judged.scores, made.offsets);
  const at::Tensor occurs = tensor_of(made.prior).gt(0), weights = judging_weights(on.judged.labels, made.prior);
  const double sum = weights.sum().item<double>(), squares = weights.square().sum().item<double>();
  result.judging_images = squares > 0 ? sum * sum / squares : 0;
  for (const JudgedRule& plain : on.rules) {
    const SetRule& name = plain.rule.rule;
    CalibratedRule rule = plain.rule;
    if (needs_images(name)) {
      if (name.takes_label_sets()) continue;  // it has no form for a place
      rule = calibrate(name, on.facts, known, on.calibration.labels, request.seed);
    }
    try {
      std::vector<std::string> notes;
      const CalibratedRule there = rules_at({made.prior, {}}, PlaceKind::kNamed, {rule}, notes).front();
      if (result.judging_images > 0)
        result.quality.push_back(judged_at(there, plain.rule, corrected, on.judged, occurs, weights));
      result.notes.insert(result.notes.end(), notes.begin(), notes.end());
      made.rules.push_back(std::move(rule));
    } catch (const ConfigError& problem) {
      result.notes.push_back(fmt::format("left out: {}", problem.what()));
    }
  }
  if (made.rules.empty()) throw ConfigError(fmt::format("no rule is left for the place {}", made.name));
  return result;
}

std::string format_places(const Calibration& calibration) {
  constexpr size_t kColumns = 120;
  const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  std::string text;
  for (const JudgedPlace& judged : calibration.places) {
    text += "\n" +
            wrap_words(fmt::format("The place {}, by {}. The images that judge are weighed to its shares, and are "
                                   "then worth {:.0f}:",
                                   judged.place.name, judged.place.source, judged.judging_images),
                       kColumns, 0) +
            "\n";
    std::vector<std::vector<std::string>> rows;
    for (const PlaceQuality& rule : judged.quality) {
      rows.push_back({rule.rule, percent(rule.coverage), fmt::format("{:.2f}", rule.mean_size),
                      percent(rule.plain_coverage), fmt::format("{:.2f}", rule.plain_mean_size)});
    }
    text += markdown_table({"rule", "coverage, %", "mean size", "not for the place: coverage, %", "mean size"}, rows);
    if (!judged.by_confusion.empty()) text += "\nEstimated shares\n\n" + table_of_shares(judged, calibration);
    for (const std::string& note : judged.notes) text += wrap_words("- " + note, kColumns, 2);
  }
  return text;
}

nlohmann::ordered_json places_json(const Calibration& calibration) {
  nlohmann::ordered_json places = nlohmann::ordered_json::array();
  for (const JudgedPlace& judged : calibration.places) {
    nlohmann::ordered_json rules = nlohmann::ordered_json::array();
    for (const PlaceQuality& rule : judged.quality) {
      rules.push_back({{"rule", rule.rule},
                       {"coverage", rule.coverage},
                       {"mean_size", rule.mean_size},
                       {"plain_coverage", rule.plain_coverage},
                       {"plain_mean_size", rule.plain_mean_size}});
    }
    places.push_back({{"name", judged.place.name},
                      {"source", judged.place.source},
                      {"prior", judged.place.prior},
                      {"by_confusion", judged.by_confusion},
                      {"judging_images", judged.judging_images},
                      {"notes", judged.notes},
                      {"rules", std::move(rules)}});
  }
  return places;
}

}  // namespace settrain
