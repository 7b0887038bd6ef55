#include <fmt/format.h>

#include <algorithm>

#include "src/papers/figure/paper_figure.h"
#include "tests/papers/figure/figure_files.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::FigureFiles;
using test::kFigure;
using Quantity = FigureAxis::Quantity;
using Places = std::vector<size_t>;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a figure's file says what each panel shows") {
  FigureFiles files;
  const PaperFigure figure = read_figure(files.write_figure(kFigure), "paper");
  CHECK(figure.name == "paper/1");
  REQUIRE(figure.panels.size() == 4);
  CHECK(figure.numbers() == std::vector<std::string>{"1", "2", "3"});
  const FigurePanel& along = figure.panels[0];
  CHECK((along.x.quantity == Quantity::kRows && along.x.is_log() && along.x.is_of_numbers() &&
         along.kind == ChartKind::kLines));
  CHECK((along.y.is_error && along.y.least == 0.0 && !along.y.most && along.rows == Places{0, 1, 2}));
  CHECK((figure.panels[1].x.quantity == Quantity::kEpochs && figure.panels[1].rows == Places{0}));
  CHECK((figure.panels[2].kind == ChartKind::kPoints && figure.panels[2].x.column == size_t{0}));
  CHECK((figure.panels[3].kind == ChartKind::kSteps && figure.panels[3].columns == Places{0}));
}

TEST_CASE("a figure's runs are those that its panels show, each with what is shown of it") {
  FigureFiles files;
  PaperFigure figure = read_figure(files.write_figure(kFigure), "paper");
  CHECK(figure.wanted_cells().size() == 6);
  figure.keep_only("2");
  std::vector<WantedCell> cells = figure.wanted_cells();
  REQUIRE(cells.size() == 4);  // two rows of B, and of A along x
  CHECK(cells[0].metrics == std::vector<std::string>{"test/top1"});
  CHECK(cells[0].selects == std::vector<std::string>{"val/top1"});
  CHECK(grid_of(figure, cells).steps[0].list.size() == 4);
  // Its runs are those of the whole file, whose other figures need other checkpoints.
  CHECK(grid_of(figure, cells).select == "val/top1");
  CHECK(grid_of(figure, cells).also == std::vector<std::string>{"val/top5"});

  figure = read_figure(figure.file, "paper");
  figure.keep_only("1b");
  cells = figure.wanted_cells();
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].metrics.empty());
  CHECK(cells[0].logged == std::vector<std::string>{"train/gradient_nonzeros"});
}

TEST_CASE("words of a figure's let stand in what is shown, and a preset has its own") {
  FigureFiles files;
  std::string text =
      replaced(kFigure, "title: Of all kinds", "title: \"On {data}, {how}\"\nlet: {data: plants, how: whole}");
  text = replaced(text, "label: epsilon}", "label: \"epsilon, {data}\"}");
  text = replaced(text, "smoke: {", "smoke: {let: {how: small}, ");
  PaperFigure figure = read_figure(files.write_figure(text), "paper");
  CHECK(figure.title == "On plants, whole");
  CHECK(figure.panels[0].x.label == "epsilon, plants");
  CHECK(read_figure(figure.file, "smoke").title == "On plants, small");
  CHECK_THROWS_WITH(read_figure(files.write_figure(replaced(text, "{how}", "{who}")), "paper"),
                    Contains("On plants, {who}: no `let` has this word"));
}

TEST_CASE("a figure's files have names that are safe") {
  FigureFiles files;
  PaperFigure figure = read_figure(files.write_figure(kFigure), "smoke");
  CHECK(figure.chart_name("1") == "paper-1a-smoke");  // b is not left
  CHECK(figure.origin() == "After A paper. Preset smoke: Small.");
  figure.preset = "it's/..";
  figure.name = ".paper/f";
  CHECK(figure.chart_name("1") == "_paper-1a-it_s-..");
  figure = read_figure(files.write_figure(kFigure, "../odd {x}/f.yaml"), "paper");
  CHECK(figure.chart_name("1") == "odd__x_-1");
  CHECK(read_figure(files.figures() / "paper/../odd {x}/f.yaml", "paper").name == "odd {x}/f");
}

TEST_CASE("a figure is found by its number, by a panel's, and by its file") {
  FigureFiles files;
  files.write_figure(replaced(kFigure, "Of all kinds", "Many"), "many.yaml");
  CHECK(find_figure(files.figures(), "paper/many", "paper").panels.size() == 4);
  CHECK(find_figure(files.figures(), "paper/1", "paper").panels.size() == 2);
  CHECK(find_figure(files.figures(), "paper/1b", "paper").panels[0].part == "b");
  CHECK(find_figure(files.figures(), (files.figures() / "paper/many.yaml").string(), "paper").panels.size() == 4);
  CHECK_THROWS_WITH(find_figure(files.figures(), "paper/1c", "paper"), Contains("did you mean 'paper/1"));
  // The smoke preset keeps no row of panel 1b.
  CHECK_THROWS_WITH(find_figure(files.figures(), "paper/1b", "smoke"), Contains("has no figure 1b"));
}

TEST_CASE("a figure's preset keeps rows and columns, and panels that have some left") {
  FigureFiles files;
  const PaperFigure figure = read_figure(files.write_figure(kFigure), "smoke");
  REQUIRE(figure.rows.each.size() == 2);
  REQUIRE(figure.panels.size() == 3);  // without 1b
  CHECK(figure.panels[0].rows == Places{0, 1});
  CHECK(figure.panels[1].rows == Places{0});
  CHECK(figure.panels[2].rows == Places{1});
  CHECK(figure.settings(1, 0).back() == std::pair<std::string, std::string>{"train.epochs", "1"});

  // A column that another panel has along x goes with it.
  const std::string column_panel = replaced(kFigure, "rows: [\"1\", \"10\"]", "columns: [B]");
  CHECK(read_figure(files.write_figure(column_panel), "smoke").numbers() == std::vector<std::string>{"1"});
}

TEST_CASE("a preset's own rows take the place of all, where no panel names some") {
  FigureFiles files;
  CHECK_THROWS_WITH(read_figure(files.write_figure(kFigure), "own"), Contains("only where no panel names some"));
  const std::string plain =
      kFigure.substr(0, kFigure.find("  - number: \"1\"\n    part: b")) + kFigure.substr(kFigure.find("presets:"));
  const PaperFigure figure = read_figure(files.write_figure(plain), "own");
  REQUIRE(figure.rows.each.size() == 1);
  CHECK(figure.panels[0].rows == Places{0});
  CHECK(figure.rows.each[0].label == "2");
}

TEST_CASE("what is wrong with a figure's file is said with its place") {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases{
      {"label: \"0.1\"", "label: small", "there is no row '0.1'"},
      {"label: \"1\"", "label: one", "there is no row '1'"},
      {"label: \"10\"", "label: \"-10\"", "there is no row '10'"},
      {"rows: [\"10\"]", "rows: [\"11\"]", "there is no row '11'"},
      {"column: A, label", "column: C, label", "there is no column 'C'"},
      {"of: rows, scale: log", "of: raws, scale: log", "expected one of metric, rows, columns"},
      {"scale: log", "scale: logarithmic", "expected one of words, linear, log"},
      {"x: {of: epochs, label: Epoch}", "x: {label: Epoch}", "expected on the axis x either a metric"},
      {"y: {metric: train/gradient_nonzeros, label: Coordinates}", "y: {label: Coordinates}", "a metric on the axis y"},
      {"label: Classes", "lable: Classes", "did you mean 'label'?"},
      {"select: val/top1", "select: test/top1", "expected the key select"},
      {"- number: \"2\"", "- title: two", "expected the key number"},
      {"metric: test/avg2", "metric: \"test/avg{k}\"", "no `let` has this word"},
      {"x: {of: epochs, label: Epoch}", "x: {of: epochs, scale: words, label: Epoch}", "the scale words is of labels"},
      {"metric: test/avg2", "metric: test/top2", "sizes are of average-K's sets"},
      {"metric: test/avg2", "from: last_epoch, metric: test/avg2", "from and column choose nothing"},
      {"label: \"Error, %\", least: 0", "label: \"Error, %\", least: 5, most: 5", "least is not below most"},
      {"x: {of: epochs, label: Epoch}", "x: {of: epochs, label: Epoch, mark: 3}", "mark is of y"},
      {"y: {metric: test/top1, label: B}", "y: {metric: test/avg2_size, error: true, label: B}", "1 minus an accuracy"},
      {"y: {metric: test/top1, label: B}", "y: {metric: top1, label: B}", "expected a metric on the axis y"},
      {"part: b", "part: a", "there are two panels '1a'"},
      {"number: \"2\"", "number: 2 (left)", "of letters, digits and points"},
      {"rows: [\"10\"]", "rows: []", "expected labels of rows"},
      {"rows: [\"0.1\", \"1\"]", "rows: [\"1\", \"1\"]", "'1' comes twice"},
      {"presets:", "lorenz: true\npresets:", "it has no runs"},
      {"base: ../../base.yaml", "paper2: b", "unknown key 'paper2'"}};
  for (const auto& [from, to, message] : cases) {
    FigureFiles files;
    CAPTURE(to);
    const auto file = files.write_figure(replaced(kFigure, from, to));
    CHECK_THROWS_WITH(read_figure(file, "paper"), Contains(message) && Contains("1.yaml:"));
  }
  FigureFiles files;
  // A panel of all rows takes any label; the axis does not.
  const std::string plain = kFigure.substr(0, kFigure.find("  - number: \"1\"\n    part: b"));
  const auto line = 1 + std::count(plain.begin(), plain.begin() + plain.find("label: \"1\""), '\n');
  for (const std::string label : {"one", "0", "1x", "inf"}) {
    const auto file = files.write_figure(replaced(plain, "label: \"1\"", "label: \"" + label + "\""));
    CHECK_THROWS_WITH(read_figure(file, "paper"), Contains("is no number for an axis with the scale log") &&
                                                      Contains(fmt::format(".yaml:{}:", line)));
  }
  CHECK_THROWS_WITH(read_figure(files.write_figure(replaced(plain, "label: \"1\"", "label: \"10.0\"")), "paper"),
                    Contains("is the number of another label"));
}

}  // namespace settrain
