#include "src/plot/chart.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "src/core/error.h"
#include "src/plot/chart_axis.h"
#include "src/plot/chart_labels.h"
#include "src/plot/chart_script.h"
#include "src/plot/text_size.h"

using namespace settrain;
using Catch::Matchers::Contains;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

Chart chart_of(ChartPanel panel) {
  return {"a", "A chart", "", {std::move(panel)}};
}

Chart with_series(std::vector<ChartSeries> series, ChartKind kind = ChartKind::kLines) {
  return chart_of({"", kind, {"x"}, {"y"}, std::move(series)});
}

std::vector<std::string> labels_of(const ChartScale& scale) {
  std::vector<std::string> labels;
  for (const ChartTick& tick : scale.ticks) {
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  return labels;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("The table has a row a point, at full precision", "[fast]") {
  Chart chart = with_series({{"one", {{0.1, 1.0 / 3, 0.25, 1e-7}, {2, 1e300}}}, {"two", {{3, -0.5, {}, {}, "third"}}}});
  chart.panels.push_back(
      {"", ChartKind::kPoints, {"network", false, {"resnet18", "vit, base"}}, {"y"}, {{"", {{1, 5}}}}});
  CHECK(chart_csv(chart) ==
        "panel,series,x,y,below,above,label\n"
        "1,one,0.1,0.3333333333333333,0.25,1e-07,\n"
        "1,one,2,1e+300,,,\n"
        "1,two,3,-0.5,,,third\n"
        "2,,\"vit, base\",5,,,\n");
}

TEST_CASE("What is not finite is an empty cell", "[fast]") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(chart_csv(with_series({{"a", {{1, kNan, kNan, infinity}, {kNan, 2}, {3, -infinity}}}})) ==
        "panel,series,x,y,below,above,label\n1,a,1,,,,\n1,a,,2,,,\n1,a,3,,,,\n");
}

TEST_CASE("Cells with commas and quotes are quoted, and a row stays a line", "[fast]") {
  CHECK(chart_cell("plain it's {x}_2 `ε` #") == "plain it's {x}_2 `ε` #");
  CHECK(chart_cell("a,b") == "\"a,b\"");
  CHECK(chart_cell("a \"b\"") == "\"a \"\"b\"\"\"");
  CHECK(chart_cell("two\r\nlines\t") == "two  lines ");
}

TEST_CASE("A chart that cannot be drawn is refused, with the place of the mistake", "[fast]") {
  const auto refused = [](const Chart& chart, const std::string& why) {
    CHECK_THROWS_AS(chart_csv(chart), Error);
    CHECK_THROWS_WITH(chart_csv(chart), Contains(why));
    CHECK_THROWS_WITH(chart_script(chart), Contains(why));
  };
  for (const char* name : {"", "a b", "../a", "a/b", "-a", ".a", "a'", "a`b`", "\u03b5"}) {
    Chart chart = with_series({});
    chart.name = name;
    refused(chart, "cannot be called '" + std::string(name) + "'");
  }
  refused({"a", "A", "", {}}, "chart a has no panel");
  refused(with_series({{"s"}, {"s"}}), "panel 1: two series are called 's'");
  refused(with_series({{"s\n"}, {"s "}}), "two series");

  Chart log = with_series({{"good", {{1, 1}}}, {"bad", {{0, 1}}}});
  CHECK_NOTHROW(chart_csv(log));
  log.panels[0].x.is_log = true;
  refused(log, "chart a, panel 1, series 'bad', x: 0 has no place on a logarithmic axis");
  log.panels[0].series[1].points = {{1, -2}};
  log.panels[0].y.is_log = true;
  refused(log, "series 'bad', y: -2");
  log.panels[0].series[1].points = {{1, kNan}, {kNan, 1}, {2, 1, -1, 3}};
  CHECK_NOTHROW(chart_script(log));

  Chart ends = with_series({});
  ends.panels[0].y.least = 2;
  ends.panels[0].y.most = 2;
  refused(ends, "y: an axis cannot reach from 2 to 2");
  ends.panels[0].y = {.label = "y", .is_log = true, .least = 0.0};
  refused(ends, "a logarithmic axis cannot end at 0");

  Chart categories = with_series({{"s", {{2, 1}}}});
  categories.panels[0].x.categories = {"a", "b"};
  refused(categories, "series 's', x: 2 is none of 2 categories");
  categories.panels[0].series[0].points = {{0.5, 1}};
  refused(categories, "0.5 is none");
  categories.panels[0].x.categories = {"a", "a"};
  refused(categories, "two categories are called 'a'");
}

TEST_CASE("Steps of the height 0 may stand on a logarithmic axis", "[fast]") {
  Chart chart = with_series({{"s", {{1, 0}, {2, 10}, {3, 100}}}}, ChartKind::kSteps);
  chart.panels[0].y.is_log = true;
  CHECK_NOTHROW(chart_script(chart));
  CHECK(y_scale(chart.panels[0]).least > 5);
  chart.panels[0].kind = ChartKind::kLines;
  CHECK_THROWS_WITH(chart_script(chart), Contains("series 's', y: 0"));
}

TEST_CASE("An axis reaches beyond points and intervals, unless its ends are given", "[fast]") {
  ChartPanel panel = with_series({{"s", {{0, 10, 0, 12}, {100, 20}}}}).panels[0];
  CHECK(x_scale(panel).least == Approx(-5));
  CHECK(x_scale(panel).most == Approx(105));
  CHECK(y_scale(panel).least == Approx(-1));
  CHECK(y_scale(panel).most == Approx(21));
  panel.y.least = 5;
  CHECK(y_scale(panel).least == 5);
  CHECK(y_scale(panel).most == Approx(20.5));
  panel.y = {.label = "y", .least = 50.0};  // beyond all points
  CHECK(y_scale(panel).most > 50);
  panel.series[0].points = {{3, 7}};
  CHECK(x_scale(panel).least < 3);
  CHECK(x_scale(panel).most > 3);
}

TEST_CASE("Of a histogram all of the first and last bin is seen, and its foot", "[fast]") {
  const ChartPanel panel = with_series({{"s", {{1, 5}, {3, 8}, {5, 6}}}}, ChartKind::kSteps).panels[0];
  CHECK(x_scale(panel).least < 0);
  CHECK(x_scale(panel).most > 6);
  CHECK(y_scale(panel).least == 0);
}

TEST_CASE("Ticks are round numbers, on a logarithmic axis without powers of ten", "[fast]") {
  ChartPanel panel = with_series({{"s", {{0.001, 0}, {10, 100}}}}, ChartKind::kPoints).panels[0];
  CHECK(labels_of(y_scale(panel)) == Labels{"0", "20", "40", "60", "80", "100"});
  panel.x.is_log = true;
  CHECK(labels_of(x_scale(panel)) == Labels{"0.001", "0.01", "0.1", "1", "10"});
  panel.series[0].points = {{1, 0.25}, {20, 0.3}};
  CHECK(labels_of(x_scale(panel)) == Labels{"1", "3", "10"});
  CHECK(labels_of(y_scale(panel)) == Labels{"0.25", "0.26", "0.27", "0.28", "0.29", "0.30"});
  panel.series[0].points = {{0.3, 0}, {0.4, 0}};
  CHECK(labels_of(x_scale(panel)).size() >= 3);
  panel.series[0].points = {{1e-5, -1e6}, {1e6, 1e6}};
  CHECK_THAT(labels_of(x_scale(panel)), Catch::Matchers::VectorContains(std::string("1000000")));
  CHECK_THAT(labels_of(y_scale(panel)), Catch::Matchers::VectorContains(std::string("-1000000")));
}

TEST_CASE("Where a line's points stand at few places, these have marks of their own", "[fast]") {
  ChartPanel panel = with_series({{"a", {{8, 1}, {64, 2}, {1024, 1.5}}}}).panels[0];
  panel.x.is_log = true;
  CHECK(labels_of(x_scale(panel)) == Labels{"8", "64", "1024"});
  panel.series.push_back({"b", {{16, 1}, {64, 3}}});
  CHECK(labels_of(x_scale(panel)) == Labels{"8", "16", "64", "1024"});
  panel.series.push_back({"c", {{1000, 1}}});  // no room beside 1024
  CHECK(labels_of(x_scale(panel)).front() == "10");
  panel.x.is_log = false;
  panel.series = {{"a", {{1, 1}, {2, 2}, {3, 1.5}}}};
  CHECK(labels_of(x_scale(panel)) == Labels{"1", "2", "3"});
}

TEST_CASE("Of many categories some are named", "[fast]") {
  ChartPanel panel = with_series({}).panels[0];
  for (int i = 0; i < 41; ++i) panel.x.categories.push_back("class " + std::to_string(i));
  CHECK(labels_of(x_scale(panel)).size() == 14);
  CHECK(x_scale(panel).ticks.size() == 41);
  panel.x.categories.resize(20);
  CHECK(labels_of(x_scale(panel)) == panel.x.categories);
  panel.x.categories[0] = std::string(39, 'x') + "éé";
  CHECK(labels_of(x_scale(panel))[0] == std::string(39, 'x') + "\u2026");
}

TEST_CASE("Long texts are broken at blanks, and words where they must be", "[fast]") {
  CHECK(wrapped("", 10, 100).empty());
  CHECK(wrapped("one two\nthree", 10, 1000) == Labels{"one two", "three"});
  std::string text = "a subtitle of some length \u00b1 \u03b5 " + std::string(60, 'w');
  std::string joined;
  for (const std::string& line : wrapped(text, 10, 100)) {
    CHECK(text_width(line, 10) <= 100);
    joined += line;
  }
  std::erase(text, ' ');
  std::erase(joined, ' ');
  CHECK(joined == text);
  CHECK(wrapped("\u03b5\u03b5", 10, 1) == Labels{"\u03b5", "\u03b5"});
}

TEST_CASE("Labels keep off each other, off points and within the axes", "[fast]") {
  ChartPanel panel{"", ChartKind::kPoints, {"x"}, {"y"}, {{"s"}}};
  for (int i = 0; i < 9; ++i) panel.series[0].points.push_back({i / 3 * 0.1, i % 3 * 0.5, {}, {}, "noised_topk"});
  panel.series[0].points.push_back({1, 1, {}, {}, "at the right"});
  panel.series[0].points.push_back({1, kNan, {}, {}, "nowhere"});
  const PanelLayout layout = chart_layout(chart_of(panel)).panels[0];
  const auto labels = point_labels(panel, layout, {0});
  REQUIRE(labels.size() == 10);
  CHECK(labels[9].right < 0);
  const auto middle = [&](const PointLabel& label) {
    return layout.y.place(label.y) * (layout.bottom - layout.top) + label.up;
  };
  const auto left = [&](const PointLabel& label) {
    const double width = text_width(label.text, kSmallText), x = layout.x.place(label.x) * (layout.right - layout.left);
    return label.right > 0 ? x + label.right : label.right < 0 ? x + label.right - width : x - width / 2;
  };
  for (size_t i = 0; i < 10; ++i) {
    CHECK(left(labels[i]) >= 0);
    CHECK(left(labels[i]) + text_width(labels[i].text, kSmallText) <= layout.right - layout.left);
    for (size_t j = 0; j < i; ++j) {
      const bool apart = std::abs(middle(labels[i]) - middle(labels[j])) >= kSmallText ||
                         std::abs(left(labels[i]) - left(labels[j])) >= text_width("noised_topk", kSmallText);
      if (!apart) FAIL_CHECK("labels " << j << " and " << i);
    }
  }
}

TEST_CASE("Panels with the same series share a legend", "[fast]") {
  Chart chart = with_series({{"a"}, {"b"}});
  const double width = chart_layout(chart).width;
  chart.panels.push_back(chart.panels[0]);
  CHECK(chart_layout(chart).width > width);
  CHECK(chart_layout(chart).panels[0].legend.rows == 1);
  CHECK(chart_layout(chart).panels[1].legend.rows == 0);
  chart.panels[1].series[1].name = std::string(300, 'x');
  const ChartLayout layout = chart_layout(chart);
  CHECK(layout.panels[1].legend.rows == 2);
  CHECK(layout.panels[1].legend.columns[0] + kLegendSample + text_width(std::string(300, 'x'), kText) < layout.width);
}

TEST_CASE("A chart's script is a function of the chart", "[fast]") {
  const Chart chart = with_series({{"a", {{1, 2, 1.5, 2.5}, {2, 3}}}, {"b", {{1, 1}}}, {"none"}});
  const std::string text = chart_script(chart);
  CHECK(text == chart_script(chart));
  CHECK_THAT(text, Contains("data = 'a.csv'") && Contains("set terminal svg") && Contains("set terminal pngcairo"));
  CHECK_THAT(text, Contains("every ::0::1") && Contains("every ::2::2") && !Contains("no runs yet"));
  CHECK_THAT(text, !Contains("{plot}") && !Contains("{}"));
  CHECK_THAT(chart_script(with_series({})), Contains("no runs yet"));
}
