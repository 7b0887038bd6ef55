#include "src/inference/stored_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "src/core/atomic_file.h"
#include "src/core/error.h"
#include "src/core/strict_json.h"
#include "src/formats/contents.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

constexpr const char *kVersion = "rules_version", *kDigest = "checkpoint_sha256", *kTemperature = "temperature",
                     *kCalibratedOn = "calibrated_on", *kRules = "rules";
constexpr int kCurrentVersion = 1;
constexpr size_t kMostRuleDepth = 16;

ordered_json to_json(const StoredRules& stored) {
  ordered_json rules = ordered_json::array();
  for (const CalibratedRule& rule : stored.rules) rules.push_back(to_json(rule));
  return {{kVersion, kCurrentVersion},
          {kTemperature, stored.temperature},
          {kCalibratedOn, stored.calibrated_on},
          {kRules, std::move(rules)}};
}

// Strictly, then once more for objects that keep their order.
ordered_json parse(const std::string& text) {
  parse_strict_json(text, kMostRuleDepth);
  return ordered_json::parse(text);
}

StoredRules from_json(const ordered_json& json, int64_t classes) {
  if (const int version = json.at(kVersion).get<int>(); version != kCurrentVersion) {
    throw RunError(fmt::format("the version of the rules is {}, and this program knows {}", version, kCurrentVersion));
  }
  StoredRules stored{json.at(kTemperature).get<double>(), json.at(kCalibratedOn).get<std::string>(), {}};
  if (!(stored.temperature > 0) || !std::isfinite(stored.temperature)) throw RunError("the temperature is not above 0");
  for (const ordered_json& rule : json.at(kRules)) stored.rules.push_back(rule_from_json(rule, classes));
  return stored;
}

// What `read` makes of the text; every failure names the place.
template <class Read>
auto read_or_fail(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const RunError& problem) {
    throw RunError(place + ": " + problem.what());
  } catch (const std::exception& problem) {
    throw RunError(fmt::format("{}: no rules that settrain wrote: {}", place, shown(problem.what())));
  }
}

// The text of the file; nothing where there is none.
std::optional<std::string> text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

}  // namespace

std::string to_text(const StoredRules& rules) {
  return to_json(rules).dump();
}

StoredRules stored_rules_from_text(const std::string& text, int64_t classes, const std::string& place) {
  return read_or_fail(place, [&] { return from_json(parse(text), classes); });
}

void store_rules(const RunFolder& folder, const std::string& checkpoint, const std::string& sha256,
                 const StoredRules& rules) {
  StoredRules all = rules;
  const int64_t classes = rules.rules.empty() ? 0 : rules.rules.front().classes;
  try {
    const auto before = load_stored_rules(folder, checkpoint, sha256, classes);
    const bool goes_with_it =
        before && before->temperature == rules.temperature && before->calibrated_on == rules.calibrated_on;
    for (const CalibratedRule& old : goes_with_it ? before->rules : std::vector<CalibratedRule>{}) {
      const auto same_name = [&](const CalibratedRule& rule) { return rule.rule == old.rule; };
      if (std::none_of(rules.rules.begin(), rules.rules.end(), same_name)) all.rules.push_back(old);
    }
  } catch (const RunError&) {
    // Damaged, or of other weights: the new ones take its place.
  }
  ordered_json json = to_json(all);
  json[kDigest] = sha256;
  write_file_atomically(folder.rules(checkpoint), json.dump(1) + "\n");
}

std::optional<StoredRules> load_stored_rules(const RunFolder& folder, const std::string& checkpoint,
                                             const std::string& sha256, int64_t classes) {
  const std::filesystem::path file = folder.rules(checkpoint);
  const std::optional<std::string> text = text_of(file);
  if (!text) return std::nullopt;
  return read_or_fail("'" + file.string() + "'", [&] {
    const ordered_json json = parse(*text);
    if (json.at(kDigest).get<std::string>() != sha256) {
      throw RunError("calibrated for other weights than the checkpoint's; calibrate anew");
    }
    return std::optional(from_json(json, classes));
  });
}

}  // namespace settrain
