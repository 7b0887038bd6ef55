#include "src/inference/rule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/log.h"

namespace settrain {
namespace {

// The text of the file; nothing where there is none.
std::optional<std::string> text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

}  // namespace

std::vector<std::string> store_rules(const RunFolder& folder, const std::string& checkpoint, const StoredRules& rules) {
  StoredRules all = rules;
  std::vector<std::string> dropped;
  const int64_t classes = rules.rules.empty() ? 0 : rules.rules.front().classes;
  const auto has_rule = [&rules](const SetRule& wanted) {
    return std::any_of(rules.rules.begin(), rules.rules.end(),
                       [&wanted](const CalibratedRule& rule) { return rule.rule == wanted; });
  };
  try {
    const auto before = load_stored_rules(folder, checkpoint, rules.checkpoint_sha256, classes);
    const bool stay = before && before->temperature == rules.temperature &&
                      before->calibrated_on == rules.calibrated_on && before->inference == rules.inference;
    if (before) {
      for (const SetRule& old : before->outdated) {
        if (!has_rule(old)) dropped.push_back(old.name());
      }
    }
    for (const CalibratedRule& old : before ? before->rules : std::vector<CalibratedRule>{}) {
      if (has_rule(old.rule)) {
        if (all.chosen.empty() && before->chosen == old.rule.name()) all.chosen = before->chosen;
        continue;
      }
      if (stay) {
        if (all.chosen.empty() && before->chosen == old.rule.name()) all.chosen = before->chosen;
        all.rules.push_back(old);
      } else {
        dropped.push_back(old.rule.name());
      }
    }
    for (const CalibratedPlace& old : before ? before->places : std::vector<CalibratedPlace>{}) {
      if (std::ranges::count(rules.places, old.name, &CalibratedPlace::name) > 0) continue;
      if (stay) {
        all.places.push_back(old);
      } else {
        dropped.push_back("the place " + old.name);
      }
    }
  } catch (const RunError& problem) {
    log::warning(fmt::format("[calibrate] the earlier rules are replaced: {}", problem.what()));
  }
  write_file_atomically(folder.rules(checkpoint), to_text(all) + "\n");
  return dropped;
}

std::optional<StoredRules> load_stored_rules(const RunFolder& folder, const std::string& checkpoint,
                                             const std::string& sha256, int64_t classes) {
  const std::filesystem::path file = folder.rules(checkpoint);
  const std::optional<std::string> text = text_of(file);
  if (!text) return std::nullopt;
  const std::string place = "'" + file.string() + "'";
  StoredRules stored = stored_rules_from_text(*text, classes, place);
  if (stored.checkpoint_sha256 != sha256) {
    throw RunError(place + ": calibrated for other weights than the checkpoint's; calibrate anew");
  }
  return stored;
}

}  // namespace settrain
