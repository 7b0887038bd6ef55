#include "src/inference/set_maker.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr int64_t kUsualTop = 5;

// Throws where the run's rules, and their temperature, are not to be had.
void check_rules_of(const TrainedModel& model) {
  if (!model.rules_problem.empty()) throw RunError(model.rules_problem);
}

std::vector<SetRule> wanted_rules(const TrainedModel& model, const std::vector<std::string>& names, int64_t members) {
  std::vector<SetRule> rules;
  for (const std::string& name : names) {
    const SetRule rule = parse_set_rule(name);
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  if (!rules.empty()) return rules;
  check_rules_of(model);
  if (model.rules) {
    for (const CalibratedRule& stored : model.rules->rules) {
      // top:5 may be calibrated for classes, and there may be fewer than 5 superclasses.
      const bool fits = stored.rule.kind != SetRule::Kind::kTop || stored.rule.level <= static_cast<double>(members);
      if (fits) rules.push_back(stored.rule);
    }
  }
  if (rules.empty()) rules.push_back(parse_set_rule(fmt::format("top:{}", std::min(kUsualTop, members))));
  return rules;
}

const CalibratedRule& stored_rule(const TrainedModel& model, const SetRule& rule) {
  check_rules_of(model);
  std::vector<std::string> names;
  if (model.rules) {
    for (const CalibratedRule& stored : model.rules->rules) {
      if (stored.rule == rule) return stored;
      names.push_back(stored.rule.name());
    }
    const std::vector<SetRule>& outdated = model.rules->outdated;
    if (std::find(outdated.begin(), outdated.end(), rule) != outdated.end()) throw OutdatedRule(rule);
  }
  throw ConfigError(
      fmt::format("the rule {} is not calibrated for '{}'; calibrated are: {}. `settrain calibrate RUN --checkpoint {} "
                  "--rules {}` calibrates it for a run (then export it again); top:K and error:E need no calibration",
                  rule.name(), model.file.string(), names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                  model.is_exported ? "NAME" : model.file.stem().string(), rule.name()));
}

// Sorts by the scores, since probabilities near 0 and 1 may tie.
PredictedSet ordered_set(const bool* set, const double* scores, const double* probabilities, int64_t count) {
  PredictedSet ordered;
  for (int64_t c = 0; c < count; ++c) {
    if (set[c]) ordered.members.push_back(c);
  }
  std::stable_sort(ordered.members.begin(), ordered.members.end(),
                   [scores](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (const int64_t c : ordered.members) ordered.probabilities.push_back(static_cast<float>(probabilities[c]));
  return ordered;
}

}  // namespace

SetMaker::SetMaker(const TrainedModel& model, const std::vector<std::string>& rules, bool by_superclass)
    : names_(by_superclass ? model.card.superclass_names : model.card.class_names),
      superclass_of_(by_superclass ? model.card.superclass_of : std::vector<int64_t>{}),
      kind_(class_facts(model.card).probability) {
  if (names_.empty()) {
    throw ConfigError(fmt::format("the classes of '{}' have no superclasses", model.file.string()));
  }
  const ClassFacts members{.classes = std::ssize(names_), .names = names_, .probability = kind_};
  for (const SetRule& rule : wanted_rules(model, rules, members.classes)) {
    if (rule.kind != SetRule::Kind::kTop) check_rules_of(model);  // no temperature changes the order of the classes
    rules_.push_back(needs_images(rule) ? stored_rule(model, rule) : calibrate(rule, members, {}, {}, 0));
    rule_names_.push_back(rule.name());
  }
}

// Returns [images, superclasses] float64 scores whose probabilities are those of the superclass' classes together.
at::Tensor SetMaker::superclass_scores(const at::Tensor& scores) const {
  constexpr double kLeast = -1e300;  // the score of a superclass without classes
  const int64_t images = scores.size(0), classes = scores.size(1), count = std::ssize(names_);
  const at::Tensor exact = scores.to(at::kDouble).contiguous();
  at::Tensor result = at::full({images, count}, kLeast, at::kDouble);
  const double* from = exact.const_data_ptr<double>();
  double* largest = result.mutable_data_ptr<double>();
  std::vector<double> sums(names_.size());
  for (int64_t i = 0; i < images; ++i, from += classes, largest += count) {
    const auto of = [this](int64_t c) { return static_cast<size_t>(superclass_of_[static_cast<size_t>(c)]); };
    for (int64_t c = 0; c < classes; ++c) largest[of(c)] = std::max(largest[of(c)], from[c]);
    if (kind_ == ProbabilityKind::kSigmoid) continue;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t c = 0; c < classes; ++c) sums[of(c)] += std::exp(from[c] - largest[of(c)]);
    for (size_t s = 0; s < sums.size(); ++s) {
      if (sums[s] > 0) largest[s] += std::log(sums[s]);
    }
  }
  return result;
}

at::Tensor SetMaker::superclass_sets(const at::Tensor& sets) const {
  const int64_t images = sets.size(0), classes = sets.size(1), count = std::ssize(names_);
  at::Tensor result = at::zeros({images, count}, at::kBool);
  const bool* from = sets.const_data_ptr<bool>();
  bool* to = result.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < images; ++i, from += classes, to += count) {
    for (int64_t c = 0; c < classes; ++c) to[superclass_of_[static_cast<size_t>(c)]] |= from[c];
  }
  return result;
}

std::vector<std::vector<PredictedSet>> SetMaker::operator()(const at::Tensor& scores, int64_t first_number) const {
  const bool by_superclass = !superclass_of_.empty();
  const at::Tensor member_scores = by_superclass ? superclass_scores(scores) : scores.to(at::kDouble).contiguous();
  const at::Tensor probabilities = probabilities_of(member_scores, kind_);
  const int64_t images = scores.size(0), count = std::ssize(names_);
  std::vector<std::vector<PredictedSet>> answers(static_cast<size_t>(images));
  for (const CalibratedRule& rule : rules_) {
    const bool on_superclasses = by_superclass && !needs_images(rule.rule);
    at::Tensor sets = sets_of(rule, on_superclasses ? member_scores : scores, first_number);
    if (by_superclass && !on_superclasses) sets = superclass_sets(sets);
    for (int64_t i = 0; i < images; ++i) {
      answers[static_cast<size_t>(i)].push_back(ordered_set(sets.const_data_ptr<bool>() + i * count,
                                                            member_scores.const_data_ptr<double>() + i * count,
                                                            probabilities.const_data_ptr<double>() + i * count, count));
    }
  }
  return answers;
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

SetsAsJson::SetsAsJson(const SetMaker& maker) {
  for (const std::string& name : maker.rule_names()) rules_.push_back(json_text(name));
  for (const std::string& name : maker.names()) names_.push_back(json_text(name));
}

std::string SetsAsJson::operator()(const std::vector<PredictedSet>& sets) const {
  std::string json = "{";
  for (size_t i = 0; i < sets.size(); ++i) {
    const PredictedSet& set = sets[i];
    std::vector<std::string_view> names;
    for (const int64_t member : set.members) names.push_back(names_[static_cast<size_t>(member)]);
    json += fmt::format("{}{}:{{\"size\":{},\"names\":[{}],\"classes\":[{}],\"probabilities\":[{}]}}",
                        i == 0 ? "" : ",", rules_[i], set.members.size(), fmt::join(names, ","),
                        fmt::join(set.members, ","), fmt::join(set.probabilities, ","));
  }
  return json + "}";
}

at::Tensor log_probabilities(const at::Tensor& scores, ProbabilityKind kind) {
  const at::Tensor exact = scores.to(at::kDouble);
  return (kind == ProbabilityKind::kSoftmax ? at::log_softmax(exact, 1) : at::log_sigmoid(exact)).contiguous();
}

void GroupSum::add(const at::Tensor& log_probabilities_of_image) {
  log_probabilities.resize(static_cast<size_t>(log_probabilities_of_image.numel()));
  std::transform(log_probabilities.begin(), log_probabilities.end(),
                 log_probabilities_of_image.const_data_ptr<double>(), log_probabilities.begin(), std::plus<>());
  ++images;
}

at::Tensor GroupSum::scores(ProbabilityKind kind) const {
  at::Tensor scores = at::empty({1, std::ssize(log_probabilities)}, at::kDouble);
  double* score = scores.mutable_data_ptr<double>();
  for (const double sum : log_probabilities) {
    const double log_p = sum / static_cast<double>(images);
    // For a sigmoid the score is the logit of p. The bound matters where rounding has made p 1.
    const double log_not_p = std::log(std::max(-std::expm1(log_p), 1e-300));
    *score++ = kind == ProbabilityKind::kSoftmax ? log_p : log_p - log_not_p;
  }
  return scores;
}

}  // namespace settrain
