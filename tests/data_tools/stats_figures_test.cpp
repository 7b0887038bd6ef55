// The figures of a data set; with gnuplot, where it is installed, the pictures too.
#include <cstdlib>

#include "src/data_tools/stats_files.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

SplitStats split_of(const std::string& name, const std::vector<int64_t>& counts) {
  SplitStats split;
  split.name = name;
  split.counts = counts;
  for (const int64_t count : counts) split.labels += count;
  split.images = split.labels;
  return split;
}

DataStats made_stats(const std::vector<std::string>& classes, const std::vector<int64_t>& train) {
  DataStats stats;
  stats.dataset = "a \"made\" one\\";
  stats.class_names = classes;
  stats.splits = {split_of("train", train), split_of("val", std::vector<int64_t>(train.size(), 2)),
                  split_of("test", std::vector<int64_t>(train.size()))};
  stats.noise.kind = "none";
  return stats;
}

// Classes 0 and 2 are of one superclass.
DataStats noisy_stats() {
  DataStats stats = made_stats({"a", "b_1", "c"}, {4, 10, 2});
  stats.superclass_of = {0, 1, 0};
  stats.superclasses = {{"x", 2, 6}, {"y", 1, 10}};
  stats.noise.kind = "superclass";
  stats.noise.changed = 1;
  stats.noise_cells = {{0, 0, 3}, {0, 2, 1}, {1, 1, 10}, {2, 2, 2}};
  return stats;
}

}  // namespace

TEST_CASE("The data of the figures") {
  const DataStats stats = made_stats({"a", "b", "c"}, {4, 10, 2});
  const std::string lorenz = chart_csv(lorenz_chart(stats)), counts = chart_csv(class_counts_chart(stats));
  CHECK_THAT(lorenz, Contains("\n1,\"train, Gini 0.333\",0,0,,,\n1,\"train, Gini 0.333\",33.3"));
  CHECK_THAT(counts, Contains("\n1,train,1,10,,,b\n1,train,2,4,,,a\n1,train,3,2,,,c\n"));
  CHECK_THAT(counts, !Contains("bound"));
  CHECK_THAT(chart_csv(class_counts_chart(made_stats({"a"}, {20}))),
             Contains("20, a bound") && !Contains("100, a bound"));
  // A split without an image has no line.
  CHECK_THAT(lorenz, Contains("val, Gini") && !Contains("test"));
  CHECK_FALSE(has_noise_figure(stats));
}

TEST_CASE("The noise matrix has shares of the true class, classes of a superclass side by side") {
  const DataStats stats = noisy_stats();
  REQUIRE(has_noise_figure(stats));
  CHECK_THAT(noise_figure(stats).data, Contains("columns: 0 2 1\n0.75 0.25 0\n0 1 0\n0 0 1\n"));
  DataStats one_class = stats;
  one_class.class_names = {"a"};
  CHECK_FALSE(has_noise_figure(one_class));
}

TEST_CASE("Everything is written, and gnuplot has nothing to complain of, degenerate data included") {
  const test::TemporaryFolder folder;
  const bool drawn = test::has_gnuplot();
  const auto check = [&](const std::string& name, const DataStats& stats) {
    CAPTURE(name);
    const auto into = folder / name;
    if (drawn) {
      for (const auto& file : write_stats(stats, into)) CHECK(std::filesystem::file_size(file) > 50);
      for (const char* figure : {"lorenz", "class_counts"}) {
        CHECK(test::read_file(into / (std::string(figure) + ".png")).starts_with("\x89PNG\r\n"));
        CHECK(run_gnuplot(into, {std::string(figure) + ".gp"}).empty());
      }
    } else {
      CHECK_THROWS_WITH(write_stats(stats, into), Contains("gnuplot"));
    }
    for (const char* file : {"stats.json", "stats.txt", "lorenz.csv", "lorenz.gp", "class_counts.csv"}) {
      CHECK(std::filesystem::exists(into / file));
    }
    CHECK(std::filesystem::exists(into / "noise_matrix.gp") == has_noise_figure(stats));
    if (drawn && has_noise_figure(stats)) CHECK(run_gnuplot(into, {"noise_matrix.gp"}).empty());
  };
  check("noisy", noisy_stats());
  check("one class", made_stats({"only"}, {5}));
  check("equal", made_stats({"a", "b"}, {100, 100}));
  check("without images", made_stats({"a", "b"}, {0, 3}));
}
