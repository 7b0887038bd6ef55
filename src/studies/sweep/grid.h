// The grid of a sweep: read from its file, and expanded to the points that it stands for. grid_runs.h makes runs of
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"

namespace settrain {

/// Config keys with their values as YAML, in the order in which they were given.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The value of `key`; null where it is not set.
const std::string* find_setting(const Settings& settings, const std::string& key);

/// Sets `key`, in its place where it is set already.
void set(Settings& settings, const std::string& key, const std::string& value);

/// The keys of some points that take more than one value, or that not all of them have, in the order in which they come
/// up.
std::vector<std::string> varying_keys(const std::vector<Settings>& points);

/// The settings as overrides of a config: "key=value".
std::vector<std::string> overrides_of(const Settings& settings);

/// A key with the values that it takes one after the other.
struct Axis {
  std::string key;
  std::vector<std::string> values;
};

/// A key that follows another one: its value times `factor`.
struct Link {
  std::string key, times;
  double factor = 1;
};

/// One step on the way from a single empty point to all of them: every point is combined with each element of `list`,
/// and `links` are computed. Points for which `when` does not hold pass as they are.
struct GridStep {
  config::Origin origin{};
  std::vector<Axis> when{};      // each key has one of these values, by an earlier step; numbers count by their value
  std::vector<Settings> list{};  // a product is cut where it has more than kMostPoints
  std::vector<Link> links{};
};

/// The most points of a grid.
inline constexpr size_t kMostPoints = 100'000;

struct Grid {
  std::filesystem::path base;        // the config that every point starts from
  Settings common{};                 // set in every point
  std::vector<std::string> seeds{};  // every point is run with each; empty: with the base's own
  std::vector<GridStep> steps{};
  std::string select;                 // the validation metric that chooses a point: "val/macro_top5"
  std::vector<std::string> also{};    // further ones whose best checkpoints the runs keep
  std::vector<std::string> report{};  // metrics of the chosen points: "test/macro_top5"
  std::vector<std::string> per{};     // keys: a point is chosen for each of their values
};

/// A number as YAML: whole ones without a point, so that keys of whole numbers take them.
std::string number_text(double value);

/// Reads a grid file, and over it what its `presets` have under `preset` (an empty text: none). Throws ConfigError with
/// every offender at its file:line:column; also where a grid sets what the sweep itself decides (seed, name, select,
/// run.dir, run.threads).
Grid read_grid(const std::filesystem::path& file, const std::string& preset);

/// The points that the steps make, seeds apart, in order. `base` is the resolved config with the common settings; links
/// to keys that no step sets take its values. Throws ConfigError naming the step's place: a key that
/// `when` asks for and no step before has set, a link to what is no number, more than kMostPoints.
/// Warns of a step whose `when` no point meets.
std::vector<Settings> expand_grid(const Grid& grid, const config::Config& base);

}  // namespace settrain
