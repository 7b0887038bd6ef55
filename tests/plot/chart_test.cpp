#include "src/plot/chart.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>

#include "src/plot/chart_panel.h"
#include "tests/plot/fake_gnuplot.h"
#include "tests/plot/has_gnuplot.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

Chart with_series(std::vector<ChartSeries> series, ChartKind kind = ChartKind::kLines) {
  return {"a", "A chart", "", {{"", kind, {"x"}, {"y"}, std::move(series)}}};
}

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
  if (with_categories) panel.categories = kOddNames;
  for (size_t i = 0; i < kOddNames.size(); ++i) {
    const auto x = static_cast<double>(i);
    panel.series.push_back({kOddNames[i], {{x, 10 + x, 9 + x, 12 + x, kOddNames[i]}, {9 - x, 20 + x}}});
  }
  return {"odd", kOddNames[0], kOddNames[9], {panel}};
}

}  // namespace

TEST_CASE("The table has a row a point, at full precision") {
  Chart chart = with_series({{"one", {{0.1, 1.0 / 3, 0.25, 1e-7}, {2, 1e300}}}, {"two", {{3, -0.5, {}, {}, "third"}}}});
  chart.panels.push_back(
      {"", ChartKind::kPoints, {"network"}, {"y"}, {{"a,\r\n\"b\"", {{1, 5}}}}, {"resnet18", "vit, base"}});
  CHECK(chart_csv(chart) ==
        "panel,series,x,y,below,above,label\n"
        "1,one,0.1,0.3333333333333333,0.25,1e-07,\n"
        "1,one,2,1e+300,,,\n"
        "1,two,3,-0.5,,,third\n"
        "2,\"a,  \"\"b\"\"\",\"vit, base\",5,,,\n");
}

TEST_CASE("What is not finite is an empty cell") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(chart_csv(with_series({{"a", {{1, kNan, kNan, infinity}, {kNan, 2}, {3, -infinity}}}})) ==
        "panel,series,x,y,below,above,label\n1,a,1,,,,\n1,a,,2,,,\n1,a,3,,,,\n");
}

TEST_CASE("A marked value is a line across its own panel") {
  Chart chart = with_series({{"s", {{0, 10}, {100, 20}}}});
  const auto arrows = [&] {
    const std::string commands = chart_picture(chart).commands;
    size_t count = 0;
    for (size_t at = commands.find("set arrow 1"); at != std::string::npos; at = commands.find("set arrow 1", at + 1)) {
      ++count;
      CHECK(commands.find("unset arrow", at) != std::string::npos);
    }
    return std::pair(count, commands.find("first 17.5 ") != std::string::npos);
  };
  CHECK(arrows() == std::pair(size_t{0}, false));
  chart.panels.push_back(chart.panels[0]);
  chart.panels[0].y.mark = 17.5;
  CHECK(arrows() == std::pair(size_t{1}, true));
}

TEST_CASE("An axis reaches beyond points and intervals, unless its ends are given") {
  ChartPanel panel = with_series({{"s", {{0, 10, 0, 12}, {100, 20}, {kNan, 900}}}}).panels[0];
  CHECK(x_range(panel).least == Approx(-6));
  CHECK(x_range(panel).most == Approx(106));
  CHECK(y_range(panel).least == Approx(-1.2));
  CHECK(y_range(panel).most == Approx(21.2));
  panel.y.least = 5;
  CHECK(y_range(panel).least == 5);
  CHECK(y_range(panel).most == Approx(20.9));
  panel.y = {.label = "y", .least = 50.0};  // beyond all points
  CHECK(y_range(panel).most > 50);
  panel.x.is_log = true;
  CHECK(x_range(panel).least == Approx(50).epsilon(0.01));  // without 0
  panel.series[0].points = {{3, 7}};
  CHECK(x_range(panel).least < 3);
  CHECK(x_range(panel).most > 3);
  CHECK(x_range(with_series({}).panels[0]).least < 0);
}

TEST_CASE("Of a histogram all of the first and last bin is seen, and its foot") {
  ChartPanel panel = with_series({{"s", {{1, 5}, {3, 8}, {5, 6}}}}, ChartKind::kSteps).panels[0];
  CHECK(x_range(panel).least < 0);
  CHECK(x_range(panel).most > 6);
  CHECK(y_range(panel).least == 0);
  panel.y.is_log = true;
  panel.series[0].points[0].y = 0;
  CHECK(y_range(panel).least > 5);
}

TEST_CASE("Where points stand at few places, these have tics of their own") {
  ChartPanel panel = with_series({{"a", {{8, 1}, {64, 2}, {1024, 1.5}}}}).panels[0];
  panel.x.is_log = true;
  CHECK_THAT(axes_commands(panel), Contains("set logscale x") && Contains("set xtics norotate (8, 64, 1024)"));
  panel.series.push_back({"b", {{16, 1}, {64, 3}}});
  CHECK_THAT(axes_commands(panel), Contains("(8, 16, 64, 1024)"));
  panel.series.push_back({"c", {{1000, 1}}});  // no room beside 1024
  CHECK_THAT(axes_commands(panel), Contains("set xtics norotate (10, 20, 50, 100, 200, 500, 1000)") ||
                                       Contains("set xtics norotate autofreq"));
  panel.kind = ChartKind::kPoints;
  panel.series.resize(1);
  CHECK_THAT(axes_commands(panel), !Contains("(8, 64, 1024)"));
}

TEST_CASE("A logarithmic axis has tics however short it is") {
  const auto y_tics = [](double least, double most) {
    ChartPanel panel = with_series({{"a", {{1, least}, {2, most}}}}).panels[0];
    panel.y = {.label = "y", .is_log = true, .least = least, .most = most};
    const std::string commands = axes_commands(panel);
    const size_t begin = commands.find("set ytics norotate ") + 19;
    return commands.substr(begin, commands.find('\n', begin) - begin);
  };
  CHECK(y_tics(0.001, 10) == "autofreq");
  CHECK(y_tics(0.9, 25) == "(1, 2, 5, 10, 20)");
  CHECK(y_tics(14, 34) == "(15, 20, 25, 30)");
  CHECK(y_tics(0.309, 0.351) == "(0.31, 0.32, 0.33, 0.34, 0.35)");
}

TEST_CASE("Of many categories some are named") {
  ChartPanel panel = with_series({}).panels[0];
  for (int i = 0; i < 41; ++i) panel.categories.push_back("class " + std::to_string(i));
  CHECK_THAT(axes_commands(panel), Contains("(\"class 0\" 0, \"class 2\" 2,") && Contains("[-0.5:40.5]"));
  panel.categories = {"50 % {a}", "b"};
  CHECK_THAT(axes_commands(panel), Contains(R"(("50 %% \173a\175" 0, "b" 1))"));
}

TEST_CASE("Labels keep off points and each other, and within the axes") {
  ChartPanel panel{"", ChartKind::kPoints, {"x"}, {"y"}, {{"s"}}};
  panel.series[0].points = {{0, 0, {}, {}, "left"}, {1, 1, {}, {}, "at the right"}, {1, kNan, {}, {}, "nowhere"}};
  CHECK(label_commands(panel) ==
        "set label \"left\" at 0,0 left offset character 1,0 font small front\n"
        "set label \"at the right\" at 1,1 right offset character -1,0 font small front\n");
  panel.series[0].points = {{0, 0}, {0.5, 0.5, {}, {}, "noised"}, {0.53, 0.5, {}, {}, "noised"}, {1, 1}};
  CHECK_THAT(label_commands(panel), Contains("at 0.5,0.5 right") && Contains("at 0.53,0.5 left"));
}

// Pictures of charts, most of them drawn by gnuplot itself.

TEST_CASE("gnuplot draws a chart, whatever its texts hold, and runs nothing of them") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  for (const bool with_categories : {false, true}) {
    const Chart chart = odd_chart(with_categories);
    const auto files = draw_charts({chart}, folder / "new");
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
    CHECK_FALSE(fs::exists(folder / "new/owned"));
    CHECK(run_gnuplot(folder / "new", {"odd.gp"}).empty());  // no warnings
    CHECK(std::distance(fs::directory_iterator(folder / "new"), {}) == 4);
  }
}

TEST_CASE("A script has every point, and what is missing is left out") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ChartPanel panel{"", ChartKind::kLines, {"x"}, {"y"}, {{"none"}, {"nan", {{1, nan}}}}};
  panel.series.push_back({"s", {{1, 2}, {nan, 5}, {4, 6, 5}, {7, 8}}});
  Chart chart{"a", "A", "", {panel, panel}};
  chart.panels[1].series = {{"other", {{1, 2}}}, {"s", {{3, 4}, {4, 5}}}};
  const std::string text = picture_script(chart_picture(chart));
  CHECK(text == picture_script(chart_picture(chart)));
  CHECK_THAT(text, Contains("$panel1_3 << END\n1 2 2 2\nNaN NaN NaN NaN\n4 6 5 6\n7 8 8 8\nEND\n"));
  CHECK_THAT(text, Contains("plot $panel1_3 using 1:2:3:4 with yerrorlines linetype 3\n"));
  CHECK_THAT(text, !Contains("$panel1_1") && !Contains("$panel1_2") && !Contains("no runs yet"));
  // A series of the same name looks the same, and stands once in the legend.
  CHECK_THAT(text,
             Contains("$panel2_2 using 1:2 with linespoints linetype 3 ") && Contains("with linespoints linetype 4 "));
  CHECK(count(text, "title \"s\"") == 1);
  chart.panels[0].y.is_log = true;
  chart.panels[0].series[2].points[2].below = -5;
  CHECK_THAT(picture_script(chart_picture(chart)),
             Contains(fmt::format("\n4 6 {} 6\n", y_range(chart.panels[0]).least / 2)));
  CHECK_THAT(picture_script(chart_picture({"a", "A", "", {{}}})), Contains("no runs yet") && !Contains("The legend"));
}

TEST_CASE("With categories series stand side by side") {
  ChartPanel panel{"", ChartKind::kPoints, {"x"}, {"y"}, {{"a", {{1, 2}}}, {"b", {{1, 3}}}}, {"zero", "one"}};
  panel.series[1].points[0].label = "best";
  CHECK_THAT(picture_script(chart_picture({"a", "A", "", {panel}})),
             Contains("\n0.94 2 2 2\n") && Contains("\n1.06 3 3 3\n") && Contains("set label \"best\" at 1.06,3 "));
}

TEST_CASE("Every kind of panel is drawn, empty ones too") {
  SKIP_UNLESS(test::has_gnuplot(), test::kNoGnuplot);
  const test::TemporaryFolder folder;
  for (const ChartKind kind : {ChartKind::kLines, ChartKind::kPoints, ChartKind::kSteps}) {
    for (const bool is_log : {false, true}) {
      ChartPanel panel{"", kind, {"x", is_log}, {"y", is_log}, {{"single", {{2, 3, 1, 4}}}, {"no points"}}};
      ChartPanel empty = panel, several = panel;
      empty.series[0].points.clear();
      several.series[0].points = {{1, 2}, {2, 3}, {3, 1}};
      draw_charts({{"a", "", "", {panel, empty, several}}}, folder.path());
      CHECK(count(test::read_file(folder / "a.svg"), "no runs yet") == 1);
      CHECK(run_gnuplot(folder.path(), {"a.gp"}).empty());
    }
  }
}

TEST_CASE("Without gnuplot a chart's data and script are written, and the error says what to do") {
  const test::TemporaryFolder folder;
  const test::FakeGnuplot none;
  CHECK_THROWS_WITH(draw_charts({odd_chart(false)}, folder.path()),
                    Contains("gnuplot-nox") && Contains("run `gnuplot odd.gp` in " + folder.path().string()));
  CHECK(fs::exists(folder / "odd.csv"));
  CHECK(fs::exists(folder / "odd.gp"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
}
