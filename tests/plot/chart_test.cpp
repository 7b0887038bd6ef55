#include "src/plot/chart.h"

#include <cmath>
#include <limits>

#include "src/plot/chart_panel.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

Chart with_series(std::vector<ChartSeries> series, ChartKind kind = ChartKind::kLines) {
  return {"a", "A chart", "", {{"", kind, {"x"}, {"y"}, std::move(series)}}};
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
