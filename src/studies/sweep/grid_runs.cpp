#include "src/studies/sweep/grid_runs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "src/config/load.h"
#include "src/config/value.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

// "epsilon" where no other of the keys ends so, else "loss.epsilon".
std::string short_name(const std::string& key, const std::vector<std::string>& keys) {
  const std::string part = last_part(key);
  const auto alike =
      std::count_if(keys.begin(), keys.end(), [&](const auto& other) { return last_part(other) == part; });
  return alike > 1 || part == "seed" || part == "name" ? key : part;
}

// A folder's name, made of the keys that vary. All but letters, digits and . _ - + = , become _; where that or the
// greatest length changed the name, a digest is added, so that no two names are equal.
std::string name_of(const Settings& varied, const std::vector<std::string>& keys, const std::string& seed) {
  constexpr size_t kLongest = 120, kDigest = 8;
  std::string name, exact;
  for (const std::string& key : keys) {
    const std::string* value = find_setting(varied, key);
    if (!value) continue;
    name += fmt::format("{}{}={}", name.empty() ? "" : ",", short_name(key, keys), *value);
    exact += fmt::format("{}={}\n", key, *value);
  }
  bool is_changed = name.size() > kLongest || name.starts_with('.');
  name = name.substr(0, kLongest);
  if (!seed.empty()) name += fmt::format("{}seed={}", name.empty() ? "" : ",", seed);
  for (char& byte : name) {
    if (std::isalnum(static_cast<unsigned char>(byte)) ||
        std::string_view("._-+=,").find(byte) != std::string_view::npos) {
      continue;
    }
    byte = '_';
    is_changed = true;
  }
  if (is_changed) name += "-" + sha256(exact).substr(0, kDigest);
  return name.empty() ? "base" : name;
}

// The override of `select`: the base's metrics, the one that the sweep chooses by, and those of `also`.
std::string with_selection(const config::Config& config, const Grid& grid) {
  auto metrics = config.get<config::Texts>("select");
  config::Texts wanted{grid.select};
  wanted.insert(wanted.end(), grid.also.begin(), grid.also.end());
  for (const std::string& metric : wanted) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  }
  return fmt::format("select={}", config::yaml_value(config.at("select").key, metrics));
}

// The metrics to be reported must be measured: their names are those that can be selected by, on splits that are
// evaluated.
void check_reports(const Grid& grid, const config::Schema& schema, const config::Config& base) {
  const auto& splits = base.get<config::Texts>("eval.splits");
  std::vector<std::string> problems;
  for (const std::string& metric : grid.report) {
    const size_t slash = metric.find('/');
    const std::string split = metric.substr(0, slash);
    if (std::find(splits.begin(), splits.end(), split) == splits.end()) {
      problems.push_back(
          fmt::format("report: {}: {} is none of the splits that are evaluated (eval.splits)", metric, split));
      continue;
    }
    Settings all = grid.common;
    set(all, "eval.during_training", "[test]");
    set(all, "select", fmt::format("[{}]", config::yaml_text("test" + metric.substr(slash))));
    try {
      config::load(schema, grid.base, overrides_of(all));
    } catch (const ConfigError& problem) {
      problems.push_back(fmt::format("report: {}: {}", metric, problem.what()));
    }
  }
  if (!problems.empty()) throw ConfigError(fmt::format("{}", fmt::join(problems, "\n")));
}

// Threads are free to choose for a single run; the runs of a sweep have them in common.
bool tells_runs_apart(const config::Entry& entry) {
  return (!entry.key.is_free || entry.path == "run.threads") && entry.path != "name" && entry.path != "run.dir";
}

}  // namespace

std::string with_digest(const SweepPoint& point) {
  return point.name + "-" + point.identity.substr(0, 8);
}

std::string identity_of(const config::Config& config) {
  std::string text;
  for (const config::Entry& entry : config.entries()) {
    if (tells_runs_apart(entry))
      text += fmt::format("{}: {}\n", entry.path, config::yaml_value(entry.key, entry.value));
  }
  return sha256(text);
}

std::vector<std::string> keys_without_effect(const Grid& grid, const config::Schema& schema) {
  const config::Config base = config::load(schema, grid.base, overrides_of(grid.common));
  std::vector<std::string> keys = varying_keys(expand_grid(grid, base));
  std::erase_if(keys, [&](const std::string& key) { return !base.has(key) || tells_runs_apart(base.at(key)); });
  return keys;
}

config::Config load_asked(const config::Schema& schema, const std::filesystem::path& run) {
  config::Config config = config::load_recorded(schema, run / "config.yaml");
  std::ifstream stream(run / "provenance.json");
  const auto provenance = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!provenance.is_object()) return config;
  for (const auto& key : provenance.value("fitted", nlohmann::json::array())) {
    const std::string path = key.is_string() ? key.get<std::string>() : "";
    if (config.has(path)) config = config.with(path, config.at(path).key.default_value);
  }
  return config;
}

std::vector<SweepPoint> make_runs(const Grid& grid, const config::Schema& schema, int64_t threads, int64_t& repeated) {
  const config::Config base = config::load(schema, grid.base, overrides_of(grid.common));
  const std::vector<std::string> seeds = grid.seeds.empty() ? std::vector<std::string>{""} : grid.seeds;
  std::vector<SweepPoint> points;
  std::set<std::string> identities, names;
  std::string problems;
  int64_t num_problems = 0;
  repeated = 0;
  const std::vector<Settings> expanded = expand_grid(grid, base);
  const std::vector<std::string> keys = varying_keys(expanded);
  for (const Settings& varied : expanded) {
    for (const std::string& seed : seeds) {
      Settings all = grid.common;
      for (const auto& [key, value] : varied) set(all, key, value);
      if (!seed.empty()) set(all, "seed", seed);
      SweepPoint point{varied, "", name_of(varied, keys, seed), "", overrides_of(all)};
      point.overrides.push_back(fmt::format("run.threads={}", threads));
      point.overrides.push_back(with_selection(base, grid));
      point.overrides.push_back("name=" + config::yaml_text(point.name));
      try {
        const config::Config config = config::load(schema, grid.base, point.overrides);
        point.seed = std::to_string(config.get<int64_t>("seed"));
        point.epochs = config.get<int64_t>("train.epochs");
        point.identity = identity_of(config);
      } catch (const ConfigError& problem) {
        constexpr int64_t kShown = 3;
        if (++num_problems <= kShown) problems += fmt::format("\npoint {}: {}", point.name, problem.what());
        continue;
      }
      if (!identities.insert(point.identity).second) {
        ++repeated;
        continue;
      }
      if (!names.insert(point.name).second) point.name = with_digest(point);
      points.push_back(std::move(point));
    }
  }
  check_reports(grid, schema, base);
  if (num_problems > 0) {
    throw ConfigError(fmt::format("{} of the sweep's runs cannot be:{}", num_problems, problems));
  }
  return points;
}

}  // namespace settrain
