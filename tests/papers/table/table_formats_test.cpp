#include "src/papers/table/table_formats.h"

#include <regex>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;

// A row of two columns: one with three seeds far from what is printed, one without runs.
struct Example {
  Table table;
  FilledTable filled{.table = &table};

  Example() {
    table.name = "icml2022/4";
    table.preset = "paper";
    table.paper = "A paper";
    table.title = "A & B <table>";
    table.against = "CE";
    table.rows = {"p", {{"0.1"}, {"0.2"}}};
    table.columns = {"Loss", {{"CE"}, {"Top_K"}}};
    table.parts = {{.number = "4", .title = "Top-5", .metric = "test/top5", .select = "val/top5", .rows = {0, 1}}};
    TableCell far{.metric = "test/top5"}, near{.metric = "test/top5"}, pending{.metric = "test/top5"};
    far.printed = *parse_printed("90.0±0.1");
    far.printed_value = 0.9;
    far.seeds = {1, 2, 3};
    far.values = {0.94, 0.95, 0.96};
    far.ours = mean_interval(far.values);
    near = far;
    near.printed_value = 0.94;
    near.printed = *parse_printed("94");
    near.against = paired_difference(std::vector<double>{0.95, 0.97}, std::vector<double>{0.94, 0.94});
    pending.printed = *parse_printed("NA");
    filled.parts = {{&table.parts[0], {0, 1}, {{far, near}, {pending, TableCell{}}}}};
    filled.wanted = 9;
    filled.found = 6;
  }

  std::string markdown() const { return std::regex_replace(table_markdown(filled), std::regex(" +"), " "); }
};

}  // namespace

TEST_CASE("sizes of sets are shown as numbers of classes") {
  Example example;
  example.table.parts[0].unit = PrintedUnit::kClasses;
  TableCell& cell = example.filled.parts[0].cells[0][0];
  cell.values = {780.4};
  cell.ours = mean_interval(cell.values);
  cell.seeds = {};
  CHECK_THAT(example.markdown(), Contains("| 0.1 | 780 |"));
  CHECK_THAT(table_csv(example.filled), Contains("test/top5,classes,"));
}

TEST_CASE("a printed value outside of the interval is marked, from three seeds on") {
  Example example;
  const TableCell& far = example.filled.parts[0].cells[0][0];
  const TableCell& near = example.filled.parts[0].cells[0][1];
  // The half-width is 4.3027 * 0.01 / sqrt(3) = 0.02484.
  CHECK(*far.difference() == Approx(0.05));
  CHECK(far.is_outside());
  CHECK(*near.difference() == Approx(0.01));
  CHECK_FALSE(near.is_outside());
  TableCell two = far;
  two.values = {0.95, 0.95};
  two.ours = mean_interval(two.values);
  CHECK(*two.difference() == Approx(0.05));
  CHECK_FALSE(two.is_outside());
}

TEST_CASE("Markdown has ours, what is printed, and both differences") {
  const std::string text = Example().markdown();
  CHECK_THAT(text, Contains("# icml2022/4: A & B <table>\n"));
  CHECK_THAT(text, Contains("- 6 of 9 runs are there."));
  CHECK_THAT(text, Contains("| 0.1 | 95.00 ± 2.48, n=3 | 95.00 ± 2.48, n=3 |"));
  CHECK_THAT(text, Contains("| printed | 90.0±0.1 | 94 |"));
  CHECK_THAT(text, Contains("| difference | +5.00 * | +1.00 |"));
  CHECK_THAT(text, Contains("| minus CE | | +2.00 ± 12.71 |"));
  CHECK_THAT(text, Contains("| 0.2 | pending | |"));
  CHECK_THAT(text, Contains("| printed | NA | |"));
}

TEST_CASE("the checkpoints that count are said, the last epoch among them") {
  Example example;
  CHECK_THAT(example.markdown(), Contains("test/top5, of the checkpoint that is best by val/top5."));
  example.table.parts[0].select = "{select}";
  example.table.rows.each[0].let = {{"select", "last"}};
  example.table.rows.each[1].let = {{"select", "test/top5"}};
  CHECK_THAT(example.markdown(), Contains("of the checkpoint that is best by test/top5 or of the last epoch."));
  example.table.parts[0].select = "last";
  CHECK_THAT(example.markdown(), Contains("test/top5, of the last epoch."));
}

TEST_CASE("CSV has a line a cell, in fractions") {
  const std::string text = table_csv(Example().filled);
  CHECK_THAT(text, Contains("icml2022-4,4,0.1,CE,test/top5,fraction,1 2 3,0.95,"));
  CHECK_THAT(text, Contains(",0.9,,,"));
  CHECK_THAT(text, Contains(",true,"));
  CHECK_THAT(text, Contains(",false,CE,0.02"));
  CHECK_THAT(text, Contains("icml2022-4,4,0.2,CE,test/top5,fraction,,,,,,NA,"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);  // the header and three cells
}

TEST_CASE("LaTeX and HTML escape what they are given") {
  const Example example;
  const std::string latex = table_latex(example.filled), html = table_html(example.filled);
  CHECK_THAT(latex, Contains("A \\& B") && Contains("Top\\_K") && Contains("95.00 $\\pm$ 2.48"));
  CHECK_THAT(latex, Contains("\\begin{tabular}{lcc}"));
  CHECK_THAT(html, Contains("A &amp; B &lt;table&gt;") && !Contains("<table>:"));
  CHECK_THAT(html, Contains("class=\"outside\">+5.00 *<"));
  CHECK_THAT(html, !Contains("http"));
}

}  // namespace settrain
