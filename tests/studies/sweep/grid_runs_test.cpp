#include "src/studies/sweep/grid_runs.h"

#include <set>

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;
using config::key;
using Names = std::vector<std::string>;

struct PointOptions {
  int64_t seed = 0, threads = 0, epochs = 0, workers = 0;
  double epsilon = 0;
  std::string name, dir;
  config::Texts select, splits;
};

// As much of a run's schema as a sweep asks for.
config::Schema schema() {
  return {{{"",
            "",
            {key("seed", &PointOptions::seed, 4, ""), key("name", &PointOptions::name, "${file}", ""),
             key("select", &PointOptions::select, {"val/top1"}, "")},
            "",
            "",
            {}},
           {"run",
            "",
            {key("dir", &PointOptions::dir, "runs", "").free(), key("threads", &PointOptions::threads, 1, "").free()},
            "",
            "",
            {}},
           {"data", "", {key("workers", &PointOptions::workers, 1, "").free()}, "", "", {}},
           {"loss",
            "",
            {key("epsilon", &PointOptions::epsilon, 1.0, "").above(0), key("name", &PointOptions::name, "a", "")},
            "",
            "",
            {}},
           {"eval", "", {key("splits", &PointOptions::splits, {"val", "test"}, "")}, "", "", {}},
           {"train", "", {key("epochs", &PointOptions::epochs, 3, "")}, "", "", {}}},
          {}};
}

class GridOf {
 public:
  GridOf(const std::string& points, Names seeds) {
    folder_.write("base.yaml", std::string("loss: {epsilon: 2.0}\n"));
    folder_.write("grid.yaml", "base: base.yaml\nselect: val/top5\npoints: " + points);
    grid_ = read_grid(folder_ / "grid.yaml", "");
    grid_.seeds = std::move(seeds);
  }

  std::vector<SweepPoint> points() { return make_runs(grid_, schema(), 2, repeated); }
  Names names() {
    Names all;
    for (const SweepPoint& point : points()) all.push_back(point.name);
    return all;
  }

  Names keys_without_effect() { return settrain::keys_without_effect(grid_, schema()); }

  int64_t repeated = 0;

 private:
  test::TemporaryFolder folder_;
  Grid grid_;
};

}  // namespace

TEST_CASE("runs are named by the keys that vary, and the seed") {
  CHECK(GridOf("[{product: {loss.epsilon: [0.5, 1], train.epochs: [2]}}]", {"1", "2"}).names() ==
        Names{"epsilon=0.5,seed=1", "epsilon=0.5,seed=2", "epsilon=1,seed=1", "epsilon=1,seed=2"});
  CHECK(GridOf("[{product: {train.epochs: [2]}}]", {}).names() == Names{"base"});
  CHECK(GridOf("[{product: {loss.name: [x, y/z]}}]", {}).names().at(0) == "loss.name=x");
  const std::string changed = GridOf("[{product: {loss.name: [x, y/z]}}]", {}).names().at(1);
  CHECK_THAT(changed, Catch::StartsWith("loss.name=y_z-"));
  const std::string longest =
      GridOf("[{product: {loss.name: [x, " + std::string(300, 'y') + "]}}]", {"7"}).names().at(1);
  CHECK(longest.size() < 160);
  CHECK_THAT(longest, Contains("seed=7-"));
}

TEST_CASE("points are resolved with what the sweep needs") {
  GridOf grid("[{product: {loss.epsilon: [0.5]}}]", {"9"});
  const SweepPoint point = grid.points().at(0);
  CHECK(point.seed == "9");
  CHECK(point.epochs == 3);
  std::set<std::string> overrides(point.overrides.begin(), point.overrides.end());
  CHECK(overrides.count("loss.epsilon=0.5") == 1);
  CHECK(overrides.count("run.threads=2") == 1);
  CHECK(overrides.count("select=[val/top1, val/top5]") == 1);
}

TEST_CASE("points that come to the same config are kept once") {
  GridOf grid(
      "[{list: [{loss.epsilon: 2}, {train.epochs: 3}, {loss.epsilon: 2.0, data.workers: 5}, {loss.epsilon: 1}]}]",
      {"1"});
  CHECK(grid.points().size() == 2);
  CHECK(grid.repeated == 2);
  CHECK(grid.keys_without_effect() == Names{"data.workers"});
}

TEST_CASE("a config's identity is what its numbers follow from") {
  const auto identity = [](const Names& settings) { return identity_of(config::load(schema(), {}, settings)); };
  CHECK(identity({}) == identity({"name=other", "run.dir=elsewhere", "data.workers=3"}));
  CHECK(identity({}) != identity({"seed=5"}));
  CHECK(identity({}) != identity({"run.threads=2"}));
  CHECK(identity({}) != identity({"loss.epsilon=1.5"}));
}

TEST_CASE("what is wrong with points is said by their names, of some of them") {
  GridOf grid("[{product: {loss.epsilon: [0, -1, 1, -2, -3, -4]}}]", {});
  CHECK_THROWS_WITH(grid.points(), Contains("5 of the sweep's runs cannot be:") && Contains("point epsilon=-2: ") &&
                                       Contains("loss.epsilon") && !Contains("epsilon=-3:"));
  CHECK_THROWS_AS(grid.points(), ConfigError);
}

}  // namespace settrain
