// The runs of a sweep: every point of its grid with every seed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/studies/sweep/grid.h"

namespace settrain {

struct SweepPoint {
  Settings varied;                     // what the grid says of it, the seed apart
  std::string seed;                    // as resolved
  std::string name;                    // "epsilon=0.1,num_draws=5,seed=1": its run's folder
  std::string identity;                // digest of all of its config that numbers follow from
  std::vector<std::string> overrides;  // as --set takes them, but for run.dir
  int64_t epochs = 0;
};

/// The point's name with a part of its identity, where the name alone is taken.
std::string with_digest(const SweepPoint& point);

/// The digest of all values of a resolved config that a run's numbers follow from: without the keys that change none
/// (Key::free, but for run.threads), `name`, and the run's folder.
std::string identity_of(const config::Config& config);

/// Resolves every point with every seed, for `threads` compute threads. Of points that come to the same config only the
/// first is kept, and `repeated` counts the others. Throws ConfigError with everything that is wrong with the first
/// points that are not right.
std::vector<SweepPoint> make_points(const Grid& grid, const config::Schema& schema, int64_t threads, int64_t& repeated);

}  // namespace settrain
