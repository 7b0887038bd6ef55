#include "metrics/sets/rules/stored_rules.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/core/error.h"
#include "src/core/strict_json.h"
#include "src/formats/contents.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

constexpr const char *kVersion = "rules_version", *kDigest = "checkpoint_sha256", *kTemperature = "temperature",
                     *kCalibratedOn = "calibrated_on", *kRules = "rules";
constexpr size_t kMostDepth = 16;

StoredRules from_json(const ordered_json& json, int64_t classes) {
  const ordered_json& version = json.at(kVersion);
  if (!version.is_number_integer() || version < 1 || version > kRuleVersion) {
    throw RunError(
        fmt::format("the rules are of version {}, and this program knows 1 to {}", version.dump(), kRuleVersion));
  }
  StoredRules stored;
  stored.temperature = json.at(kTemperature).get<double>();
  if (!(stored.temperature > 0) || !std::isfinite(stored.temperature)) throw RunError("the temperature is not above 0");
  stored.calibrated_on = json.at(kCalibratedOn).get<std::string>();
  stored.checkpoint_sha256 = json.value(kDigest, std::string());
  for (const ordered_json& rule : json.at(kRules)) {
    if (version > 1 && !rule.contains("version")) throw RunError("a rule has no version");
    try {
      stored.rules.push_back(rule_from_json(rule, classes));
    } catch (const OutdatedRule& problem) {
      stored.outdated.push_back(problem.rule);
    }
  }
  return stored;
}

}  // namespace

std::string to_text(const StoredRules& stored) {
  ordered_json json{{kVersion, kRuleVersion}, {kTemperature, stored.temperature}};
  json[kCalibratedOn] = stored.calibrated_on;
  if (!stored.checkpoint_sha256.empty()) json[kDigest] = stored.checkpoint_sha256;
  ordered_json rules = ordered_json::array();
  for (const CalibratedRule& rule : stored.rules) rules.push_back(to_json(rule));
  json[kRules] = std::move(rules);
  return json.dump();
}

StoredRules stored_rules_from_text(const std::string& text, int64_t classes, const std::string& place) {
  try {
    parse_strict_json(text, kMostDepth);  // and once more for objects that keep their order
    return from_json(ordered_json::parse(text), classes);
  } catch (const RunError& problem) {
    throw RunError(place + ": " + problem.what());
  } catch (const std::exception& problem) {
    throw RunError(fmt::format("{}: no rules that settrain wrote: {}", place, shown(problem.what())));
  }
}

}  // namespace settrain
