#include "src/studies/sweep/grid.h"

#include <set>

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;
using config::key;

struct GridOptions {
  int64_t batch_size = 0;
  double lr = 0;
  std::string name;
};

config::Config base() {
  const config::Schema schema{{{"data", "", {key("batch_size", &GridOptions::batch_size, 64, "")}, "", "", {}},
                               {"loss", "", {key("name", &GridOptions::name, "a", "")}, "", "", {}}},
                              {}};
  return config::load(schema, {}, {});
}

class GridFile {
 public:
  explicit GridFile(const std::string& points, const std::string& rest = "") {
    folder_.write("g.yaml", "base: b.yaml\nselect: val/top1\n" + rest + "points:\n" + points);
  }

  Grid read(const std::string& preset = "") const { return read_grid(folder_ / "g.yaml", preset); }
  // "k=v l=w" a point.
  std::vector<std::string> expanded(const std::string& preset = "") const {
    std::vector<std::string> lines;
    for (const Settings& point : expand_grid(read(preset), base())) {
      std::string line;
      for (const auto& [name, value] : point) line += (line.empty() ? "" : " ") + name + "=" + value;
      lines.push_back(line);
    }
    return lines;
  }

 private:
  test::TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;

void check_refused(const std::string& points, const std::string& reason, const std::string& rest = "") {
  const GridFile file(points, rest);
  CHECK_THROWS_WITH(file.expanded(), Contains("g.yaml:") && Contains(reason));
  CHECK_THROWS_AS(file.expanded(), ConfigError);
}

}  // namespace

TEST_CASE("a product is every combination, the last key fastest") {
  CHECK(GridFile("  - product: {a: [1, 2], b: [x, 'y z']}").expanded() ==
        Lines{"a=1 b=x", "a=1 b=\"y z\"", "a=2 b=x", "a=2 b=\"y z\""});
  CHECK(GridFile("  - product: {a: [[1, 2], [3]]}").expanded() == Lines{"a=[1, 2]", "a=[3]"});
}

TEST_CASE("a number and curves may be values of one key") {
  CHECK(GridFile("  - product: {a: [1, {from: 1, to: 0.5}, {from: 2, to: 1, curve: cosine}]}").expanded() ==
        Lines{"a=1", "a={from: 1, to: 0.5}", "a={from: 2, to: 1, curve: cosine}"});
  CHECK(GridFile("  - list: [{a: {from: 1, to: 2}}, {a: 3}]\n  - {when: {a: {from: 1, to: 2}}, product: {b: [4, 5]}}")
            .expanded() == Lines{"a={from: 1, to: 2} b=4", "a={from: 1, to: 2} b=5", "a=3"});
  check_refused("  - product: {a: [1, {form: 1, to: 0.5}]}", "unknown key 'form', did you mean 'from'?");
  check_refused("  - product: {a: [1, {}]}", "{from, to, curve}");
}

TEST_CASE("zips, lists and steps one after the other") {
  CHECK(GridFile("  - zip: {a: [1, 2], b: [3, 4]}").expanded() == Lines{"a=1 b=3", "a=2 b=4"});
  CHECK(GridFile("  - list: [{a: 1}, {b: 2, c: 3}]").expanded() == Lines{"a=1", "b=2 c=3"});
  CHECK(GridFile("  - list: [{a: 1}, {a: 2}]\n  - product: {b: [3, 4]}").expanded() ==
        Lines{"a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"});
}

TEST_CASE("ranges, with even steps or even quotients") {
  CHECK(GridFile("  - product: {a: {range: [0, 1, 5]}}").expanded() ==
        Lines{"a=0", "a=0.25", "a=0.5", "a=0.75", "a=1"});
  CHECK(GridFile("  - product: {a: {log_range: [0.01, 100, 5]}}").expanded() ==
        Lines{"a=0.01", "a=0.1", "a=1", "a=10", "a=100"});
}

TEST_CASE("a condition lets points pass as they are") {
  CHECK(GridFile("  - product: {l: [x, y, z]}\n  - when: {l: y}\n    product: {e: [1, 2]}\n"
                 "  - when: {l: [x, z]}\n    product: {f: [3]}")
            .expanded() == Lines{"l=x f=3", "l=y e=1", "l=y e=2", "l=z f=3"});
}

TEST_CASE("a condition compares numbers by their value") {
  CHECK(GridFile("  - product: {a: [0.10, 1e-2]}\n  - when: {a: 0.1}\n    product: {b: [1]}\n"
                 "  - when: {a: 0.01}\n    product: {b: [2]}")
            .expanded() == Lines{"a=0.10 b=1", "a=1e-2 b=2"});
}

TEST_CASE("a condition that no point meets is told") {
  const GridFile file("  - product: {l: [x, y]}\n  - when: {l: [z, w]}\n    product: {e: [1]}");
  const std::string told = test::logged([&] { CHECK(file.expanded() == Lines{"l=x", "l=y"}); });
  CHECK_THAT(told, Contains("when: no point has l: z or w, and the step is left out"));
}

TEST_CASE("a linked key follows another one, of the point or of the base") {
  CHECK(GridFile("  - product: {data.batch_size: [32, 128]}\n  - link: {lr: {times: data.batch_size, by: 0.5}}")
            .expanded() == Lines{"data.batch_size=32 lr=16", "data.batch_size=128 lr=64"});
  CHECK(GridFile("  - link: {lr: {times: data.batch_size, by: 0.25}}").expanded() == Lines{"lr=16"});
  CHECK(GridFile("  - link: {lr: {times: data.batch_size, by: 0.25}, decay: {times: lr, by: 0.5}}").expanded() ==
        Lines{"lr=16 decay=8"});
}

TEST_CASE("a condition on a key that only some points have holds for none of the others") {
  CHECK(GridFile("  - list: [{l: x, g: 1}, {l: y}]\n  - when: {g: 1}\n    product: {e: [2]}").expanded() ==
        Lines{"l=x g=1 e=2", "l=y"});
}

TEST_CASE("keys vary that take several values or are not everywhere") {
  CHECK(varying_keys({{{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", "1"}, {"b", "4"}}}) == Lines{"b", "c"});
  CHECK(varying_keys({{{"a", "1"}}}).empty());
}

TEST_CASE("random points are a function of the seed, and lie where they should") {
  const std::string keys =
      "keys: {a: {log_uniform: [0.001, 1]}, b: {integer: [1, 3]}, c: {choice: [x, y]}, d: {uniform: [2, 4]}}}";
  const GridFile file("  - random: {count: 200, seed: 1, " + keys);
  const auto points = expand_grid(file.read(), base());
  REQUIRE(points.size() == 200);
  std::set<std::string> b, c;
  int small = 0;
  for (const Settings& point : points) {
    const double a = std::stod(*find_setting(point, "a")), d = std::stod(*find_setting(point, "d"));
    CHECK((a >= 0.001 && a <= 1 && d >= 2 && d <= 4));
    small += a < 0.0316 ? 1 : 0;  // half of the logarithm's range
    b.insert(*find_setting(point, "b"));
    c.insert(*find_setting(point, "c"));
  }
  CHECK((small > 70 && small < 130));
  CHECK(b == std::set<std::string>{"1", "2", "3"});
  CHECK(c == std::set<std::string>{"x", "y"});
  CHECK(GridFile("  - random: {count: 200, seed: 1, " + keys).expanded() == file.expanded());
  CHECK(GridFile("  - random: {count: 200, seed: 2, " + keys).expanded() != file.expanded());
  // More points keep those that there were.
  const auto more = GridFile("  - random: {count: 201, seed: 1, " + keys).expanded();
  CHECK(Lines(more.begin(), more.end() - 1) == file.expanded());
}

TEST_CASE("a preset is put over the rest") {
  const GridFile file("  - product: {a: [1, 2]}",
                      "set: {x: 1, y: 2}\nseeds: [1, 2, 3]\npresets:\n  small: {seeds: [1], set: {y: 3}}\n");
  CHECK(file.read().seeds == Lines{"1", "2", "3"});
  const Grid small = file.read("small");
  CHECK(small.seeds == Lines{"1"});
  CHECK(small.common == Settings{{"x", "1"}, {"y", "3"}});
  CHECK(small.steps.size() == 1);
  CHECK_THROWS_WITH(file.read("smal"), Contains("there is no preset 'smal'; the file has: small"));
}

TEST_CASE("a preset's steps under `then` come after the file's own") {
  const GridFile file(
      "  - product: {k: [5], a: [1, 2]}",
      "presets:\n  k1: {then: [{when: {a: 2}, product: {k: [1]}}]}\n  one: {points: [{product: {a: [3]}}]}\n"
      "  early: {then: [{product: {k: [2]}}], points: [{product: {a: [4]}}]}\n");
  CHECK(file.expanded() == Lines{"k=5 a=1", "k=5 a=2"});
  CHECK(file.expanded("k1") == Lines{"k=5 a=1", "k=1 a=2"});
  CHECK(file.expanded("one") == Lines{"a=3"});
  CHECK(file.expanded("early") == Lines{"a=4 k=2"});  // in whatever order they stand
}

TEST_CASE("a base with a shell's ~ is told that it is not replaced") {
  const test::TemporaryFolder folder;
  folder.write("g.yaml", std::string("base: ~/b.yaml\nselect: val/top1\npoints:\n  - product: {a: [1]}\n"));
  CHECK_THROWS_WITH(read_grid(folder / "g.yaml", ""), Contains("g.yaml:1:7") && Contains("~ is not replaced"));
}

TEST_CASE("what is wrong in a grid is said with its place") {
  check_refused("  - prodct: {a: [1]}", "unknown key 'prodct', did you mean 'product'?");
  check_refused("  - product: {a: 1}", "expected a list of values");
  check_refused("  - product: {a: []}", "is empty");
  check_refused("  - product: {a: [1], a: [2]}", "'a' comes twice");
  check_refused("  - zip: {a: [1, 2], b: [3]}", "b has 1 values, a has 2");
  check_refused("  - {product: {a: [1]}, list: [{b: 1}]}", "expected one of product, zip, list, random and link");
  check_refused("  - when: {l: x}\n    product: {e: [1]}", "when: no step before sets l");
  check_refused("  - link: {decay: {times: lr, by: 2}, lr: {times: data.batch_size, by: 2}}", "lr is set after decay");
  check_refused("  - random: {count: 1, seed: 1, keys: {a: {integer: [0, 1e19]}}}", "of up to 2^53");
  check_refused("  - link: {lr: {times: nothing, by: 2}}", "there is no key nothing");
  check_refused("  - link: {lr: {times: loss.name, by: 2}}", "loss.name is a, and no number");
  check_refused("  - product: {a: {log_range: [0, 1, 3]}}", "lies above zero");
  check_refused("  - product: {a: {range: [0, 1]}}", "expected a list of 3 numbers");
  check_refused("  - random: {count: 0, seed: 1, keys: {a: {uniform: [0, 1]}}}", "expected a whole number from 1");
  check_refused("  - product: {a: {range: [1, 1000, 1000]}, b: {range: [1, 1000, 1000]}}", "more than 100000 points");
  check_refused("  - product: {a: {}}", "expected one of range and log_range");
  check_refused("  - product: {seed: [1, 2]}", "the sweep's seeds are the list `seeds`");
  check_refused("  - list: [{run.dir: x}]", "the sweep names its runs");
  check_refused("  - product: {run.threads: [1, 2]}", "--threads");
  check_refused("  - product: {a: [1]}", "select: the metric that chooses", "set: {select: [val/top1]}\n");
  check_refused("  - product: {a: [1]}", "per: no step sets 'b'", "per: [b]\n");
  check_refused("  - product: {a: [1]}", "report: 'top1' has no split", "report: [top1]\n");
  check_refused("  {}", "expected a list of steps");
  test::TemporaryFolder folder;
  for (const auto& [select, place] : {std::pair("select: test/top1\n", "g.yaml:2:9: select: 'test/top1' is not"),
                                      std::pair("", "g.yaml:1:1: expected the key select")}) {
    folder.write("g.yaml", std::string("base: b.yaml\n") + select + "points: [{product: {a: [1]}}]\n");
    CHECK_THROWS_WITH(read_grid(folder / "g.yaml", ""), Contains(place));
  }
  folder.write("g.yaml",
               std::string("base: b.yaml\nselect: test/top1\nreport: [top1]\npoints: [{product: {a: [1]}}]\n"));
  CHECK_THROWS_WITH(read_grid(folder / "g.yaml", ""), Contains("select: 'test/top1'") && Contains("report: 'top1'"));
}

}  // namespace settrain
