#include "src/inference/set_maker.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/label_shift.h"
#include "metrics/sets/p_values.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/inference/answer_place.h"

namespace settrain {
namespace {

constexpr int64_t kUsualTop = 5;

bool has_p_values(const CalibratedRule& rule) {
  try {
    check_has_p_values(rule);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// Throws where the run's rules, and their temperature, are not to be had.
void check_rules_of(const TrainedModel& model) {
  if (!model.rules_problem.empty()) throw RunError(model.rules_problem);
}

// Whether a picture can have small p-values alone.
bool tells_unknown(const CalibratedRule& rule) {
  return has_p_values(rule) && rule.rule.threshold == ConformalThreshold::kMarginal &&
         std::ranges::count(rule.class_factor, kAlwaysIn) == 0 &&
         std::ranges::count(rule.place_weights, kAlwaysIn) == 0;
}

// Null where the form asks for none that rules were calibrated for.
const CalibratedPlace* place_named(const TrainedModel& model, const std::string& name) {
  if (!model.rules) return nullptr;
  const auto found = std::ranges::find(model.rules->places, name, &CalibratedPlace::name);
  return found == model.rules->places.end() ? nullptr : &*found;
}

// The calibrated rules: those of the place where there is one.
std::vector<CalibratedRule> stored_rules(const TrainedModel& model, const CalibratedPlace* place) {
  if (place) return place->rules;
  return model.rules ? model.rules->rules : std::vector<CalibratedRule>{};
}

std::vector<SetRule> wanted_rules(const TrainedModel& model, const CalibratedPlace* place,
                                  const std::vector<std::string>& names, int64_t members) {
  std::vector<SetRule> rules;
  for (const std::string& name : names) {
    const SetRule rule = parse_set_rule(name);
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  if (!rules.empty()) return rules;
  check_rules_of(model);
  const std::vector<CalibratedRule> stored = stored_rules(model, place);
  const std::string chosen = model.rules ? model.rules->chosen : "";
  if (const CalibratedRule* rule = default_rule(stored, chosen)) {
    if (!chosen.empty() && rule->rule.name() != chosen) {
      log::warning(
          fmt::format("[model] {} was chosen to answer, but {}: {} answers", chosen,
                      place ? fmt::format("the place {} has no such rule", place->name) : "must be calibrated again",
                      rule->rule.name()));
    }
    // top:5 may be calibrated for classes, and there may be fewer than 5 superclasses.
    const bool fits = rule->rule.kind != SetRule::Kind::kTop || rule->rule.level <= static_cast<double>(members);
    if (fits) rules.push_back(rule->rule);
  }
  if (rules.empty()) rules.push_back(parse_set_rule(fmt::format("top:{}", std::min(kUsualTop, members))));
  return rules;
}

CalibratedRule stored_rule(const TrainedModel& model, const CalibratedPlace* place, const SetRule& rule) {
  check_rules_of(model);
  std::vector<std::string> names;
  for (const CalibratedRule& stored : stored_rules(model, place)) {
    if (stored.rule == rule) return stored;
    names.push_back(stored.rule.name());
  }
  if (model.rules && std::ranges::count(model.rules->outdated, rule) > 0) throw OutdatedRule(rule);
  throw ConfigError(fmt::format(
      "the rule {} is not calibrated for '{}'{}; calibrated are: {}. `settrain calibrate RUN --checkpoint {} "
      "--rules '{}'{}` calibrates it for a run (then export it again); top:K and error:E need no calibration",
      rule.name(), model.file.string(), place ? " and the place " + place->name : "",
      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
      model.is_exported ? "NAME" : model.file.stem().string(), rule.name(),
      place ? fmt::format(" --prior {}=FILE", place->name) : ""));
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

SetMaker::SetMaker(const TrainedModel& model, const std::vector<std::string>& rules, const AnswerForm& form)
    : names_(form.by_superclass ? model.card.superclass_names : model.card.class_names),
      superclass_of_(form.by_superclass ? model.card.superclass_of : std::vector<int64_t>{}),
      kind_(class_facts(model.card).probability),
      form_(form) {
  if (form.by_superclass && form.roll_up > 0)
    throw ConfigError("--roll-up answers by nodes, and --by superclass by superclasses");
  if (names_.empty()) {
    throw ConfigError(fmt::format("the classes of '{}' have no superclasses", model.file.string()));
  }
  const ClassFacts members{.classes = std::ssize(names_), .names = names_, .probability = kind_};
  const CalibratedPlace* place = place_named(model, form.prior);
  for (const SetRule& rule : wanted_rules(model, place, rules, members.classes)) {
    if (rule.kind != SetRule::Kind::kTop) check_rules_of(model);  // no temperature changes the order of the classes
    rules_.push_back(needs_images(rule) ? stored_rule(model, place, rule) : calibrate(rule, members, {}, {}, 0));
    rule_names_.push_back(rule.name());
  }
  go_to_place(model, place);
  check_p_values();
  const auto has_nodes = [this](const CalibratedRule& rule) { return most_nodes(rule.rule) > 0; };
  if (!form.by_superclass && std::ranges::any_of(rules_, has_nodes)) add_taxonomy(model);
}

// Changes the rules to those of the place. `named`: a place that rules were calibrated for; null where the place is a
// file's.
void SetMaker::go_to_place(const TrainedModel& model, const CalibratedPlace* named) {
  if (form_.only.empty() && form_.prior.empty()) return;
  if (!form_.only.empty() && !form_.prior.empty())
    throw ConfigError("--only and --prior are both for a place: give one");
  if (form_.by_superclass) throw ConfigError("a place has classes, and --by superclass answers without them");
  const PlaceKind kind = named ? PlaceKind::kNamed : form_.prior.empty() ? PlaceKind::kOnly : PlaceKind::kPrior;
  PlaceShares place;
  if (named) {
    place = {named->prior,
             {fmt::format("the shares of the classes at {} are those of {}", named->name, named->source)}};
    offsets_ = named->offsets;
  } else {
    check_place_file(model);
    place =
        read_place(form_.prior.empty() ? form_.only : form_.prior, model.card.class_names, model.card.class_keys, kind);
  }
  prior_ = place.prior;
  place_notes_ = place.notes;
  rules_ = rules_at(place, kind, rules_, place_notes_);
  rule_names_.clear();
  for (const CalibratedRule& rule : rules_) rule_names_.push_back(rule.rule.name());
}

// Throws where --prior is neither a file nor the name of a place.
void SetMaker::check_place_file(const TrainedModel& model) const {
  std::error_code ignored;
  if (form_.prior.empty() || !is_place_name(form_.prior) || std::filesystem::exists(form_.prior, ignored)) return;
  check_rules_of(model);
  std::vector<std::string> names;
  if (model.rules) {
    for (const CalibratedPlace& place : model.rules->places) names.push_back(place.name);
  }
  throw ConfigError(fmt::format(
      "--prior {}: is no file, and no place that rules were calibrated for; there {}. `settrain calibrate RUN --prior "
      "{}=FILE` calibrates them",
      form_.prior, names.empty() ? "is none" : fmt::format("are: {}", fmt::join(names, ", ")), form_.prior));
}

void SetMaker::check_p_values() const {
  if (!form_.p_values && form_.unknown == 0) return;
  if (form_.by_superclass) throw ConfigError("p-values are those of classes, and --by superclass answers without them");
  if (std::ranges::none_of(rules_, has_p_values)) check_has_p_values(rules_.front());
  if (form_.unknown == 0) return;
  const auto judge = std::ranges::find_if(rules_, tells_unknown);
  if (judge == rules_.end()) {
    throw ConfigError(
        "--unknown: needs a conformal rule with a threshold of all images, and no class that is in every set: "
        "its p-value would be 1 for every picture");
  }
  if (form_.unknown * static_cast<double>(judge->images + 1) < 1) {
    throw ConfigError(
        fmt::format("--unknown {}: no p-value is below 1 / {}, one more than the calibration images of {}",
                    form_.unknown, judge->images + 1, judge->rule.name()));
  }
}

// [classes] bool
at::Tensor SetMaker::occurring_classes() const {
  std::vector<uint8_t> occurs;
  for (const double weight : prior_) occurs.push_back(weight > 0);
  return at::tensor(occurs, at::kByte).to(at::kBool);
}

// Scores with which classes that do not occur at the place come last, with a probability of 0.
at::Tensor SetMaker::scores_at_place(const at::Tensor& scores) const {
  constexpr double kNever = -1e30;
  return scores.masked_fill(occurring_classes().logical_not(), kNever);
}

void SetMaker::add_taxonomy(const TrainedModel& model) {
  const Taxonomy& taxonomy = model.card.taxonomy;
  if (taxonomy.empty()) {
    throw ConfigError(
        fmt::format("the classes of '{}' have no taxonomy (data.taxonomy) to roll sets up in", model.file.string()));
  }
  const std::vector<std::vector<std::string>> all_paths = paths_of(taxonomy);
  std::vector<std::vector<std::string>> paths;
  for (size_t c = 0; c < names_.size(); ++c) {
    const bool occurs = prior_.empty() || prior_[c] > 0;
    leaf_of_.push_back(occurs ? std::ssize(paths) : -1);
    if (!occurs) continue;
    paths.push_back(all_paths[c]);
    node_names_.push_back(names_[c]);
  }
  const Taxonomy here = make_taxonomy(taxonomy.ranks, paths);
  tree_.emplace(here.parent, here.num_classes());
  node_names_.insert(node_names_.end(), here.names.begin(), here.names.end());
  node_names_.back() = prior_.empty() ? "all classes" : "all classes of the place";
  for (const int64_t rank : here.rank) {
    const bool is_root = rank == std::ssize(here.ranks);
    node_ranks_.push_back(is_root ? "root" : here.ranks[static_cast<size_t>(rank)]);
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

// Adds the nodes that cover the set. `p` [classes] probabilities.
void SetMaker::roll_up(PredictedSet& set, const double* p, int64_t most) const {
  std::vector<double> leaf_p(static_cast<size_t>(tree_->classes()));
  for (size_t c = 0; c < leaf_of_.size(); ++c) {
    if (leaf_of_[c] >= 0) leaf_p[static_cast<size_t>(leaf_of_[c])] = p[c];
  }
  std::vector<int64_t> wanted;
  for (const int64_t c : set.members) wanted.push_back(leaf_of_[static_cast<size_t>(c)]);
  const std::vector<double> mass = tree_->masses(leaf_p.data());
  set.nodes = tree_->cover(wanted, mass, most);
  std::ranges::stable_sort(set.nodes, std::greater<>(), [&](int64_t node) { return mass[static_cast<size_t>(node)]; });
  for (const int64_t node : set.nodes)
    set.node_probabilities.push_back(static_cast<float>(mass[static_cast<size_t>(node)]));
}

std::vector<std::vector<PredictedSet>> SetMaker::operator()(const at::Tensor& given, int64_t first_number) const {
  const at::Tensor scores = offsets_.empty() ? given : with_offsets(given, offsets_);
  const bool by_superclass = !superclass_of_.empty();
  const at::Tensor member_scores = by_superclass ? superclass_scores(scores) : scores.to(at::kDouble).contiguous();
  const at::Tensor probabilities = probabilities_of(member_scores, kind_);
  const int64_t images = scores.size(0), count = std::ssize(names_);
  std::vector<std::vector<PredictedSet>> answers(static_cast<size_t>(images));
  bool is_judged = form_.unknown == 0;  // whether the image looks like a known class
  for (const CalibratedRule& rule : rules_) {
    const bool on_superclasses = by_superclass && !needs_images(rule.rule);
    const bool is_masked = !prior_.empty() && !needs_images(rule.rule);
    at::Tensor sets = sets_of(rule,
                              is_masked         ? scores_at_place(scores)
                              : on_superclasses ? member_scores
                                                : scores,
                              first_number);
    if (is_masked) sets.logical_and_(occurring_classes());
    at::Tensor p_values;
    const bool judges = !is_judged && tells_unknown(rule);
    if ((form_.p_values && has_p_values(rule)) || judges) p_values = p_values_of(rule, scores, first_number);
    if (by_superclass && !on_superclasses) sets = superclass_sets(sets);
    for (int64_t i = 0; i < images; ++i) {
      const double* p = probabilities.const_data_ptr<double>() + i * count;
      PredictedSet& set = answers[static_cast<size_t>(i)].emplace_back(ordered_set(
          sets.const_data_ptr<bool>() + i * count, member_scores.const_data_ptr<double>() + i * count, p, count));
      if (p_values.defined()) {
        const double* of_image = p_values.const_data_ptr<double>() + i * count;
        if (form_.p_values)
          for (const int64_t c : set.members) set.p_values.push_back(of_image[c]);
        set.is_unknown = judges && *std::max_element(of_image, of_image + count) <= form_.unknown;
      }
      if (!tree_ || most_nodes(rule.rule) == 0 || set.members.empty()) continue;
      roll_up(set, p, most_nodes(rule.rule));
    }
    is_judged = is_judged || judges;
  }
  return answers;
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

SetsAsJson::SetsAsJson(const SetMaker& maker) {
  const auto as_json = [](const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) all.push_back(json_text(text));
    return all;
  };
  rules_ = as_json(maker.rule_names());
  names_ = as_json(maker.names());
  node_names_ = as_json(maker.node_names());
  node_ranks_ = as_json(maker.node_ranks());
}

std::string SetsAsJson::operator()(const std::vector<PredictedSet>& sets) const {
  const auto list = [](const std::vector<std::string>& all, const std::vector<int64_t>& chosen) {
    std::vector<std::string_view> texts;
    for (const int64_t i : chosen) texts.push_back(all[static_cast<size_t>(i)]);
    return fmt::format("[{}]", fmt::join(texts, ","));
  };
  std::string json = "{";
  for (size_t i = 0; i < sets.size(); ++i) {
    const PredictedSet& set = sets[i];
    json += fmt::format("{}{}:{{\"size\":{},\"names\":{},\"classes\":[{}],\"probabilities\":[{}]", i == 0 ? "" : ",",
                        rules_[i], set.members.size(), list(names_, set.members), fmt::join(set.members, ","),
                        fmt::join(set.probabilities, ","));
    if (!set.nodes.empty()) {
      json += fmt::format(",\"nodes\":{},\"node_ranks\":{},\"node_probabilities\":[{}]", list(node_names_, set.nodes),
                          list(node_ranks_, set.nodes), fmt::join(set.node_probabilities, ","));
    }
    if (!set.p_values.empty()) json += fmt::format(",\"p_values\":[{}]", fmt::join(set.p_values, ","));
    if (set.is_unknown) json += ",\"unknown\":true";
    json += "}";
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
