// How a grid becomes runs: every point of it with every seed, each with its config.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/studies/sweep/grid.h"

namespace settrain {

/// A point of a grid with a seed: one run.
struct SweepPoint {
  Settings varied;                     // what the grid sets in it, without the seed
  std::string seed;                    // of the resolved config
  std::string name;                    // "epsilon=0.1,num_draws=5,seed=1": its run's folder
  std::string identity;                // digest of all of its config that numbers follow from
  std::vector<std::string> overrides;  // for --set; run.dir is not among them
  int64_t epochs = 0;
};

/// The point's name with a part of its identity, where the name alone is taken.
std::string with_digest(const SweepPoint& point);

/// The digest of all values of a resolved config that a run's numbers follow from: without the keys that change none
/// (Key::free, but for run.threads), `name`, and the run's folder.
std::string identity_of(const config::Config& config);

/// Keys that vary in the grid and tell no runs apart, as identity_of() has it.
std::vector<std::string> keys_without_effect(const Grid& grid, const config::Schema& schema);

/// The config that the run in a folder was asked for: the recorded one, with the usual defaults where the run fitted
/// them to its number of classes. So its identity is that of the point it was trained for. Throws as load_recorded().
config::Config load_asked(const config::Schema& schema, const std::filesystem::path& run);

/// Resolves every point with every seed, for `threads` compute threads. If several points give the same config, only
/// the first is kept, and `repeated` counts the others. Throws ConfigError with everything that is wrong with the first
/// points that are not right.
std::vector<SweepPoint> make_runs(const Grid& grid, const config::Schema& schema, int64_t threads, int64_t& repeated);

}  // namespace settrain
