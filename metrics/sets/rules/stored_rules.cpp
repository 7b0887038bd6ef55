#include "metrics/sets/rules/stored_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "metrics/sets/rules/rule_terms.h"
#include "src/core/error.h"
#include "src/core/strict_json.h"
#include "src/core/taxonomy.h"
#include "src/core/text.h"
#include "src/formats/contents.h"

namespace settrain {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

[[noreturn]] void damaged(const std::string& what) {
  throw RunError("a calibrated rule: " + what);
}

Json json_of(double value) {
  if (!std::isinf(value)) return value;
  return value > 0 ? "infinity" : "-infinity";
}

/// The high part, or a list of both parts where the low one is not 0.
Json json_of(const DoubleDouble& value) {
  return value.low == 0 ? json_of(value.high) : Json::array({value.high, value.low});
}

template <class T>
Json json_of(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

/// Little-endian numbers in base64: a reader has tens of thousands of them at once, where JSON's take a second.
template <class Number>
std::string packed(const std::vector<Number>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  const auto* bytes = reinterpret_cast<const uint8_t*>(numbers.data());
  return to_base64({bytes, numbers.size() * sizeof(Number)});
}

/// float64 scores, int32 labels, and the scores' low parts where there are any.
Json json_of(const LabelScores& images) {
  std::vector<double> high, low;
  for (const DoubleDouble& score : images.scores) {
    high.push_back(score.high);
    low.push_back(score.low);
  }
  Json json{{"labels", packed(std::vector<int32_t>(images.labels.begin(), images.labels.end()))},
            {"scores", packed(high)}};
  if (std::ranges::any_of(low, [](double part) { return part != 0; })) json["low_parts"] = packed(low);
  return json;
}

const Json& member(const Json& json, const char* name, bool right(const Json&)) {
  const auto found = json.find(name);
  if (found == json.end()) damaged(fmt::format("there is no '{}'", name));
  if (!right(*found)) damaged(fmt::format("'{}' is of another type", name));
  return *found;
}

bool is_array(const Json& json) {
  return json.is_array();
}
bool is_text(const Json& json) {
  return json.is_string() && is_utf8(json.get_ref<const std::string&>());
}
bool is_count(const Json& json) {
  return json.is_number_unsigned() || (json.is_number_integer() && json.get<int64_t>() >= 0);
}

/// A number; infinite ones are texts.
void read(const Json& item, const char* name, double& value) {
  value = std::numeric_limits<double>::quiet_NaN();
  if (item.is_number()) value = item.get<double>();
  if (item.is_string() && item.get_ref<const std::string&>() == "infinity") value = kInfinity;
  if (item.is_string() && item.get_ref<const std::string&>() == "-infinity") value = -kInfinity;
  if (item.is_number() && std::isinf(value)) damaged(fmt::format("'{}' has a number that is too large", name));
  if (std::isnan(value)) damaged(fmt::format("'{}' has an entry that is no number", name));
}

void read(const Json& item, const char* name, DoubleDouble& value) {
  if (!item.is_array()) return read(item, name, value.high);
  double low = 0;
  if (item.size() != 2) damaged(fmt::format("'{}' has a list that is no pair", name));
  read(item[0], name, value.high);
  read(item[1], name, low);
  if (!std::isfinite(value.high) || !(value.high + low == value.high)) {
    damaged(fmt::format("'{}' has a pair whose second number is not what rounding took from the first", name));
  }
  value.low = low;
}

/// A list of `size` numbers, each read by read_item(item, number).
template <class T, class Read>
std::vector<T> list_of(const Json& json, const char* name, int64_t size, const Read& read_item) {
  const Json& list = member(json, name, is_array);
  if (std::ssize(list) != size) damaged(fmt::format("'{}' has {} numbers, expected {}", name, list.size(), size));
  std::vector<T> values(list.size());
  for (size_t i = 0; i < values.size(); ++i) read_item(list[i], values[i]);
  return values;
}

template <class T>
std::vector<T> numbers(const Json& json, const char* name, int64_t size) {
  return list_of<T>(json, name, size, [&](const Json& item, T& value) { read(item, name, value); });
}

/// Brings the thresholds of a rule of version 1 to today's scale. Its probabilities were float32's, which a confident
/// network rounded to 1: ranked scores summed them, and a threshold within that rounding of p = 1 held more
/// probabilities than 1 alone.
void update_thresholds(CalibratedRule& rule) {
  constexpr double kRounding = 0x1p-20;
  const bool conformal = rule.rule.kind == SetRule::Kind::kConformal;
  if (conformal && is_ranked(rule.rule.score)) throw OutdatedRule(rule.rule);
  const bool is_lac = conformal && rule.rule.score == ConformalScore::kLac;  // stored as 1 - p
  for (size_t i = 0; i < rule.thresholds.size(); ++i) {
    DoubleDouble& threshold = rule.thresholds[i];
    if (threshold.low != 0) damaged("'thresholds' has a pair, which version 1 did not write");
    if (is_lac) threshold = DoubleDouble::sum(-1, threshold.high);
    const auto is_certain = [&](double factor) {
      return std::isfinite(factor) && std::abs(std::abs(threshold.high) - factor) < kRounding * factor;
    };
    const std::vector<double>& factors = rule.class_factor;
    const bool certain = factors.empty()               ? is_certain(1)
                         : rule.thresholds.size() == 1 ? std::any_of(factors.begin(), factors.end(), is_certain)
                                                       : is_certain(factors[i]);
    if (certain) throw OutdatedRule(rule.rule);
  }
}

std::vector<int64_t> ranks(const Json& json, int64_t size, int64_t classes) {
  return list_of<int64_t>(json, "most_ranks", size, [&](const Json& item, int64_t& rank) {
    if (!is_count(item) || item.get<uint64_t>() < 1 || item.get<uint64_t>() > static_cast<uint64_t>(classes)) {
      damaged(fmt::format("'most_ranks' has what is no rank from 1 to {}", classes));
    }
    rank = item.get<int64_t>();
  });
}

template <class Number>
std::vector<Number> unpacked(const Json& json, const char* name) {
  const auto bytes = from_base64(member(json, name, is_text).get_ref<const std::string&>());
  if (!bytes || bytes->size() % sizeof(Number) != 0)
    damaged(fmt::format("'{}' of the calibration images are no base64 of numbers", name));
  std::vector<Number> numbers(bytes->size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes->data(), bytes->size());
  return numbers;
}

LabelScores label_scores_of(const Json& json, int64_t classes, int64_t images) {
  if (!json.is_object()) damaged("'label_scores' is no object");
  const auto labels = unpacked<int32_t>(json, "labels");
  const auto high = unpacked<double>(json, "scores");
  const auto low = json.contains("low_parts") ? unpacked<double>(json, "low_parts") : std::vector<double>(high.size());
  if (std::ssize(labels) != images || high.size() != labels.size() || low.size() != labels.size())
    damaged(fmt::format("'label_scores' are not those of {} images", images));
  LabelScores result;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) damaged("'label_scores' has a label that is no class");
    if (std::isnan(high[i]) || !(std::isfinite(low[i]) && (high[i] + low[i] == high[i])))
      damaged("'label_scores' has a score that is none");
    result.labels.push_back(labels[i]);
    result.scores.push_back(DoubleDouble::sum(high[i], low[i]));
  }
  return result;
}

std::vector<int64_t> superclasses_of(const Json& json, int64_t classes) {
  return list_of<int64_t>(json, "superclass_of", classes, [](const Json& item, int64_t& superclass) {
    if (!is_count(item) || item.get<uint64_t>() > INT32_MAX) damaged("'superclass_of' has what is no superclass");
    superclass = item.get<int64_t>();
  });
}

std::vector<int64_t> tree_of(const Json& json, int64_t classes) {
  std::vector<int64_t> parents;
  for (const Json& node : member(json, "tree", is_array)) {
    if (!node.is_number_integer()) damaged("'tree' has what is no node");
    parents.push_back(node.get<int64_t>());
  }
  constexpr int64_t kMostRanks = 16;
  if (std::ssize(parents) > kMostRanks * (classes + 1)) damaged("'tree' has more nodes than ranks could have");
  try {
    NodeCover(parents, classes);
  } catch (const std::invalid_argument& error) {
    damaged(fmt::format("'tree' is {}", error.what()));
  }
  return parents;
}

SetRule rule_of(const std::string& name) {
  try {
    return parse_set_rule(name);
  } catch (const ConfigError& error) {
    damaged(error.what());
  }
}

constexpr const char *kVersion = "rules_version", *kDigest = "checkpoint_sha256", *kChosen = "default",
                     *kTemperature = "temperature", *kCalibratedOn = "calibrated_on", *kRules = "rules",
                     *kPlaces = "places", *kInference = "inference", *kDifferences = "inference_differences";
constexpr size_t kMostDepth = 16;

Json json_of(const CalibratedPlace& place) {
  Json rules = Json::array();
  for (const CalibratedRule& rule : place.rules) rules.push_back(to_json(rule));
  return {{"name", place.name},
          {"source", place.source},
          {"prior", json_of(place.prior)},
          {"offsets", json_of(place.offsets)},
          {kRules, std::move(rules)}};
}

StoredRules from_json(const Json& json, int64_t classes) {
  const Json& version = json.at(kVersion);
  if (!version.is_number_integer() || version < 1 || version > kRuleVersion) {
    throw RunError(
        fmt::format("the rules are of version {}, and this program knows 1 to {}", version.dump(), kRuleVersion));
  }
  StoredRules stored;
  stored.temperature = json.at(kTemperature).get<double>();
  if (!(stored.temperature > 0) || !std::isfinite(stored.temperature)) throw RunError("the temperature is not above 0");
  stored.calibrated_on = json.at(kCalibratedOn).get<std::string>();
  stored.checkpoint_sha256 = json.value(kDigest, std::string());
  stored.inference = json.value(kInference, stored.inference);  // earlier versions knew no other
  const auto check_form = [](const std::string& name) {
    if (name != "exact" && name != "fast" && name != "bf16") {
      throw RunError("'inference' is none of exact, fast and bf16");
    }
  };
  check_form(stored.inference);
  stored.inference_differences = json.value(kDifferences, stored.inference_differences);
  for (const auto& [form, difference] : stored.inference_differences) check_form(form);
  for (const Json& rule : json.at(kRules)) {
    if (version > 1 && !rule.contains("version")) throw RunError("a rule has no version");
    try {
      stored.rules.push_back(rule_from_json(rule, classes));
    } catch (const OutdatedRule& problem) {
      stored.outdated.push_back(problem.rule);
    }
  }
  if (json.contains(kPlaces)) {
    for (const Json& place : member(json, kPlaces, is_array)) stored.places.push_back(place_from_json(place, classes));
  }
  stored.chosen = json.value(kChosen, std::string());
  const auto is_chosen = [&](const SetRule& rule) { return rule.name() == stored.chosen; };
  if (!stored.chosen.empty() && std::ranges::none_of(stored.rules, is_chosen, &CalibratedRule::rule) &&
      std::ranges::none_of(stored.outdated, is_chosen)) {
    throw RunError(fmt::format("the default rule {} is none of the rules", shown(stored.chosen)));
  }
  return stored;
}

}  // namespace

bool is_place_name(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
             std::string_view::npos;
}

CalibratedPlace place_from_json(const Json& json, int64_t classes) {
  constexpr double kRounding = 1e-6;
  CalibratedPlace place{.name = member(json, "name", is_text).get<std::string>(),
                        .source = member(json, "source", is_text).get<std::string>(),
                        .prior = numbers<double>(json, "prior", classes),
                        .offsets = numbers<double>(json, "offsets", classes)};
  if (!is_place_name(place.name)) damaged("a place has what is no name");
  double sum = 0;
  for (size_t c = 0; c < place.prior.size(); ++c) {
    sum += place.prior[c];
    const double offset = place.offsets[c];
    if (!(place.prior[c] >= 0) || (std::isinf(offset) && (offset > 0 || place.prior[c] > 0)))
      damaged(fmt::format("the place '{}' has shares or offsets that are none", place.name));
  }
  if (!(std::abs(sum - 1) < kRounding))
    damaged(fmt::format("the shares of the place '{}' do not sum to 1", place.name));
  for (const Json& rule : member(json, kRules, is_array)) place.rules.push_back(rule_from_json(rule, classes));
  return place;
}

bool is_always_full(const CalibratedRule& rule) {
  if (rule.thresholds.empty() || !rule.most_ranks.empty()) return false;
  return std::ranges::all_of(rule.thresholds, [&rule](const DoubleDouble& threshold) {
    return threshold.high == kAlwaysIn || is_largest_score(rule.rule, threshold);
  });
}

const CalibratedRule* default_rule(std::span<const CalibratedRule> rules, const std::string& chosen) {
  const CalibratedRule* best = nullptr;
  bool is_lac = false;
  for (const CalibratedRule& rule : rules) {
    if (rule.rule.name() == chosen) return &rule;
    if (!needs_images(rule.rule) || is_always_full(rule)) continue;
    const bool lac = rule.rule.kind == SetRule::Kind::kConformal && rule.rule.score == ConformalScore::kLac &&
                     rule.rule.threshold == ConformalThreshold::kMarginal;
    if (best && (is_lac || !lac)) continue;
    best = &rule;
    is_lac = lac;
  }
  return best;
}

OutdatedRule::OutdatedRule(const SetRule& outdated)
    : RunError(fmt::format("the rule {} was calibrated by an earlier version of settrain, which computed other "
                           "probabilities where a network is very sure: calibrate it again",
                           outdated.name())),
      rule(outdated) {}

Json to_json(const CalibratedRule& rule) {
  Json json;
  json["version"] = kRuleVersion;
  json["rule"] = rule.rule.name();
  json["probability"] = rule.probability == ProbabilityKind::kSigmoid ? "sigmoid" : "softmax";
  json["classes"] = rule.classes;
  json["thresholds"] = json_of(rule.thresholds);
  json["most_ranks"] = rule.most_ranks;
  json["class_factor"] = json_of(rule.class_factor);
  if (rule.rule.tuning != RapsTuning::kNone) json["tuned"] = {{"lambda", rule.tuned.lambda}, {"k", rule.tuned.k}};
  if (!rule.tree.empty()) json["tree"] = rule.tree;
  if (!rule.superclass_of.empty()) json["superclass_of"] = rule.superclass_of;
  if (!rule.label_scores.scores.empty()) json["label_scores"] = json_of(rule.label_scores);
  json["seed"] = rule.seed;
  json["images"] = rule.images;
  json["guarantee"] = rule.guarantee;
  json["notes"] = rule.notes;
  return json;
}

CalibratedRule rule_from_json(const Json& json, int64_t classes) {
  if (!json.is_object()) damaged("it is no object");
  int64_t version = 1;  // version 1 did not write its number
  if (json.contains("version")) {
    const Json& number = member(json, "version", is_count);
    if (number < 1 || number > kRuleVersion) {
      damaged(fmt::format("its version is {}, and this program knows 1 to {}", number.dump(), kRuleVersion));
    }
    version = number.get<int64_t>();
  }
  CalibratedRule rule;
  rule.rule = rule_of(member(json, "rule", is_text).get_ref<const std::string&>());
  const auto& probability = member(json, "probability", is_text).get_ref<const std::string&>();
  if (probability != "softmax" && probability != "sigmoid") damaged("'probability' is neither softmax nor sigmoid");
  rule.probability = probability == "sigmoid" ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax;
  const uint64_t count = member(json, "classes", is_count).get<uint64_t>();
  if (count != static_cast<uint64_t>(classes))
    damaged(fmt::format("it is for {} classes, expected {}", count, classes));
  rule.classes = classes;
  try {
    check_suits(rule.rule, rule.probability, classes);
  } catch (const ConfigError& error) {
    damaged(error.what());
  }

  const bool conformal = rule.rule.kind == SetRule::Kind::kConformal;
  const bool by_class = conformal && rule.rule.threshold != ConformalThreshold::kMarginal;
  const bool ranked = conformal && rule.rule.threshold == ConformalThreshold::kRc3p;
  const bool weighted =
      conformal && (rule.rule.score == ConformalScore::kPas || rule.rule.score == ConformalScore::kWpas);
  rule.thresholds = numbers<DoubleDouble>(json, "thresholds", !needs_images(rule.rule) ? 0 : by_class ? classes : 1);

  rule.most_ranks = ranks(json, ranked ? classes : 0, classes);
  rule.class_factor = numbers<double>(json, "class_factor", weighted ? classes : 0);
  if (std::any_of(rule.class_factor.begin(), rule.class_factor.end(), [](double factor) { return factor < 0; })) {
    damaged("'class_factor' has a negative number");
  }
  if (conformal && rule.rule.score == ConformalScore::kTree) rule.tree = tree_of(json, classes);
  if (rule.rule.tuning != RapsTuning::kNone) {
    const Json& tuned = member(json, "tuned", [](const Json& value) { return value.is_object(); });
    read(member(tuned, "lambda", [](const Json& value) { return value.is_number(); }), "lambda", rule.tuned.lambda);
    rule.tuned.k = member(tuned, "k", is_count).get<int64_t>();
    if (!(rule.tuned.lambda >= 0) || rule.tuned.k < 0) damaged("'tuned' has what is no lambda or k");
  }
  if (version == 1) update_thresholds(rule);
  // Thresholds of average were one double, which 1 - (1 - p) had to reach as it is rounded.
  if (rule.rule.kind == SetRule::Kind::kAverage) {
    DoubleDouble& threshold = rule.thresholds.front();
    const double high = threshold.high;
    if (high > 0.5 && high <= 1 && threshold.low == 0)
      threshold = DoubleDouble::sum(high, (std::nextafter(high, 0) - high) / 2);
  }
  // Thresholds next to 0 or 1 by less than this are of probabilities that float64 has not.
  constexpr double kTail = 1e-230;
  const auto is_of_tail = [](double part) { return part != 0 && std::abs(part) < kTail; };
  const auto has_tail = [&](const DoubleDouble& threshold) {
    return is_of_tail(threshold.high) || is_of_tail(threshold.low);
  };
  if (version == 2 && std::ranges::any_of(rule.thresholds, has_tail)) throw OutdatedRule(rule.rule);
  rule.seed = member(json, "seed", is_count).get<uint64_t>();
  rule.images = member(json, "images", is_count).get<int64_t>();
  if (rule.images < 0) damaged("'images' is too large");
  const bool of_superclass = conformal && rule.rule.threshold == ConformalThreshold::kSuperclass;
  if (json.contains("superclass_of") || (of_superclass && json.contains("label_scores")))
    rule.superclass_of = superclasses_of(json, classes);
  if (json.contains("label_scores")) rule.label_scores = label_scores_of(json["label_scores"], classes, rule.images);
  rule.guarantee = member(json, "guarantee", is_text).get<std::string>();
  for (const Json& note : member(json, "notes", is_array)) {
    if (!is_text(note)) damaged("'notes' has what is no text");
    rule.notes.push_back(note.get<std::string>());
  }
  return rule;
}

std::string to_text(const StoredRules& stored) {
  Json json{{kVersion, kRuleVersion}, {kTemperature, stored.temperature}};
  json[kCalibratedOn] = stored.calibrated_on;
  json[kInference] = stored.inference;
  if (!stored.inference_differences.empty()) json[kDifferences] = stored.inference_differences;
  if (!stored.checkpoint_sha256.empty()) json[kDigest] = stored.checkpoint_sha256;
  if (!stored.chosen.empty()) json[kChosen] = stored.chosen;
  Json rules = Json::array();
  for (const CalibratedRule& rule : stored.rules) rules.push_back(to_json(rule));
  json[kRules] = std::move(rules);
  for (const CalibratedPlace& place : stored.places) json[kPlaces].push_back(json_of(place));
  return json.dump();
}

StoredRules stored_rules_from_text(const std::string& text, int64_t classes, const std::string& place) {
  try {
    parse_strict_json(text, kMostDepth);  // parsed once more below, into objects that keep their order
    return from_json(Json::parse(text), classes);
  } catch (const RunError& problem) {
    throw RunError(place + ": " + problem.what());
  } catch (const std::exception& problem) {
    throw RunError(fmt::format("{}: no rules that settrain wrote: {}", place, shown(problem.what())));
  }
}

}  // namespace settrain
