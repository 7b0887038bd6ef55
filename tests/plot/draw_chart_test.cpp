// With gnuplot itself.
#include "src/plot/draw_chart.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <iterator>
#include <limits>
#include <sstream>

#include "src/core/error.h"
#include "src/plot/chart_axis.h"
#include "src/plot/chart_plot.h"
#include "src/plot/gnuplot.h"
#include "tests/plot/fake_gnuplot.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"

using namespace settrain;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kOddNames{"a, \"b\" c's `touch owned`",
                                         "\",",
                                         "\",\"",
                                         "'",
                                         "''",
                                         "`",
                                         "{/:Bold x}_{2}^3 {",
                                         "back\\slash \\n",
                                         "two\nlines",
                                         "# \u00b1 \u03b5 \u03c4 \u00e9 <&> %d $1 @x"};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// As it stands in an SVG.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c == '\n' ? ' ' : c);
  }
  return result;
}

Chart odd_chart(bool with_categories) {
  ChartPanel panel{kOddNames[0], ChartKind::kPoints, {kOddNames[0]}, {kOddNames[6]}};
  if (with_categories) panel.x.categories = kOddNames;
  for (size_t i = 0; i < kOddNames.size(); ++i) {
    const auto x = static_cast<double>(i);
    panel.series.push_back({kOddNames[i], {{x, 10 + x, 9 + x, 12 + x, kOddNames[i]}, {9 - x, 20 + x}}});
  }
  return {"odd", kOddNames[0], kOddNames[9], {panel}};
}

// The numbers that gnuplot reads for the chart's first panel: x and y of every point, with the ends of an interval.
std::vector<std::vector<double>> read_by_gnuplot(const Chart& chart) {
  const test::TemporaryFolder folder;
  folder.write("data.csv", chart_csv(chart));
  folder.write("table.gp", "data = 'data.csv'\n" + chart_reading() + "\nset table 'table.txt'\n" +
                               chart_plot(chart, 0, y_scale(chart.panels[0])) + "\n");
  CHECK(run_gnuplot(folder.path(), {"table.gp"}).empty());
  CHECK_FALSE(fs::exists(folder / "owned"));
  std::istringstream lines(test::read_file(folder / "table.txt"));
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    std::vector<double> row;
    for (double number = 0; numbers >> number;) row.push_back(number);
    if (row.size() > 1) rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("gnuplot draws a chart, whatever its texts hold, and runs nothing of them", "[fast]") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  for (const bool with_categories : {false, true}) {
    const Chart chart = odd_chart(with_categories);
    const auto files = draw_chart(chart, folder / "new");
    CHECK(files == std::vector<fs::path>{folder / "new/odd.svg", folder / "new/odd.png", folder / "new/odd.csv",
                                         folder / "new/odd.gp"});
    for (const fs::path& file : files) CHECK(fs::exists(file));
    CHECK(test::read_file(folder / "new/odd.csv") == chart_csv(chart));
    CHECK(test::read_file(folder / "new/odd.png").starts_with("\x89PNG\r\n"));
    const std::string svg = test::read_file(folder / "new/odd.svg");
    CHECK_THAT(svg, Contains("</svg>"));
    for (const std::string& name : kOddNames) {
      CAPTURE(name);
      CHECK(count(svg, fmt::format(">{}</text>", escaped(name))) >= 2);  // in the legend and at the point
    }
    CHECK(run_gnuplot(folder / "new", {"odd.gp"}).empty());  // no warnings
    CHECK(std::distance(fs::directory_iterator(folder / "new"), {}) == 4);
  }
}

TEST_CASE("gnuplot reads the table's numbers, whatever the names beside them", "[fast]") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  for (const bool with_categories : {false, true}) {
    Chart chart = odd_chart(with_categories);
    const auto odd = read_by_gnuplot(chart);
    for (size_t i = 0; i < kOddNames.size(); ++i) {
      const std::string name = fmt::format("s{}", i);
      chart.panels[0].series[i].name = name;
      if (with_categories) chart.panels[0].x.categories[i] = name;
    }
    const auto plain = read_by_gnuplot(chart);
    CHECK(odd == plain);
    REQUIRE(plain.size() == 3 * kOddNames.size());  // an interval and two points of each
    const double shift = with_categories ? series_shifts(chart.panels[0])[2] : 0;
    const size_t points = kOddNames.size();
    CHECK_THAT(plain[2], Catch::Matchers::Approx(std::vector<double>{2 + shift, 12, 11, 14}));
    CHECK_THAT(plain[points + 4], Catch::Matchers::Approx(std::vector<double>{2 + shift, 12}));
    CHECK_THAT(plain[points + 5], Catch::Matchers::Approx(std::vector<double>{7 + shift, 22}));
  }
}

TEST_CASE("Panels find their rows, and what is missing is left out", "[fast]") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ChartPanel panel{"", ChartKind::kLines, {"x"}, {"y"}, {{"none"}, {"nan", {{1, nan}}}}};
  panel.series.push_back({"s", {{1, 2}, {nan, 5}, {3, nan, 1, 2}, {4, 6, 5}, {7, 8}}});
  Chart chart{"a", "A", "", {panel}};
  // A row a point, but of those that are not there; the interval's other end is the point.
  CHECK(read_by_gnuplot(chart) == std::vector<std::vector<double>>{{4, 6, 5, 6}, {1, 2}, {4, 6}, {7, 8}});
  chart.panels[0].y.is_log = true;
  chart.panels[0].series[2].points[3].below = -5;
  const double foot = y_scale(chart.panels[0]).least / 2;
  CHECK(read_by_gnuplot(chart)[0][2] == Approx(foot));
}

TEST_CASE("Every kind of panel is drawn, empty ones too", "[fast]") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  for (const ChartKind kind : {ChartKind::kLines, ChartKind::kPoints, ChartKind::kSteps}) {
    for (const bool is_log : {false, true}) {
      ChartPanel panel{"", kind, {"x", is_log}, {"y", is_log}, {{"single", {{2, 3, 1, 4}}}, {"no points"}}};
      ChartPanel empty = panel, several = panel;
      empty.series[0].points.clear();
      several.series[0].points = {{1, 2}, {2, 3}, {3, 1}};
      draw_chart({"a", "", "", {panel, empty, several}}, folder.path());
      CHECK(count(test::read_file(folder / "a.svg"), "no runs yet") == 1);
      CHECK(run_gnuplot(folder.path(), {"a.gp"}).empty());
    }
  }
}

TEST_CASE("Without gnuplot a chart's data and script are written, and the error says what to do", "[fast]") {
  const test::TemporaryFolder folder;
  const test::FakeGnuplot none;
  CHECK_THROWS_WITH(draw_chart(odd_chart(false), folder.path()),
                    Contains("gnuplot-nox") && Contains("run `gnuplot odd.gp` in " + folder.path().string()));
  CHECK(fs::exists(folder / "odd.csv"));
  CHECK(fs::exists(folder / "odd.gp"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("A chart that cannot be drawn leaves no file", "[fast]") {
  const test::TemporaryFolder folder;
  Chart chart = odd_chart(false);
  chart.panels[0].x.is_log = true;
  CHECK_THROWS_WITH(draw_chart(chart, folder.path()), Contains("series 'a, \"b\" c's `touch owned`', x: 0"));
  CHECK(fs::is_empty(folder.path()));
}
