#include "src/papers/table/table.h"

#include <fstream>

#include "src/papers/design/run_design.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {

TEST_CASE("a printed cell is read as it stands") {
  const auto plain = parse_printed("94.2");
  REQUIRE(plain);
  CHECK(plain->value == 94.2);
  CHECK_FALSE(plain->spread);
  CHECK_FALSE(plain->is_absent());

  const auto whole = parse_printed("36.3±0.3 (12.6/42.9/71.7)");
  REQUIRE(whole);
  CHECK(whole->value == 36.3);
  CHECK(whole->spread == 0.3);
  CHECK(whole->groups == std::vector<double>{12.6, 42.9, 71.7});
  CHECK(whole->text == "36.3±0.3 (12.6/42.9/71.7)");

  CHECK(parse_printed("42.4 ± 0.3")->spread == 0.3);
}

TEST_CASE("what stands for no number has none") {
  CHECK(parse_printed("-")->is_absent());
  for (const char* word : {"NA", "stable", "overflow"}) {
    const auto cell = parse_printed(word);
    REQUIRE(cell);
    CHECK_FALSE(cell->value);
    CHECK_FALSE(cell->is_absent());
  }
}

TEST_CASE("other texts are refused") {
  for (const char* text : {"", "94,2", "94.2±", "94.2 (1/2", "94.2 ()", "94.2 (1/)", "94.2 x", "inf", "nan", "±1"}) {
    INFO(text);
    CHECK_FALSE(parse_printed(text));
  }
}

namespace {

using Catch::Contains;

constexpr const char* kTable = R"yaml(paper: A paper
title: A table
base: ../base.yaml
set: {train.epochs: 3}
seeds: [1, 2]
rows:
  name: K
  each:
    - {label: "1", let: {k: 1}}
    - {label: "5", let: {k: 5}, set: {data.batch_size: 7}}
columns:
  name: Loss
  each:
    - {label: CE, set: {loss.name: cross_entropy}}
    - {label: Top-K, set: {loss.name: noised_topk, loss.k: "{k}", train.epochs: 4}}
parts:
  - number: "4"
    title: Top-K
    metric: test/top{k}
    select: val/top{k}
    groups: ["test/few_top{k}", "test/many_top{k}"]
    spread: interval95
    printed:
      "1": ["70.0", "-"]
      "5": ["94.2±0.1 (1/2)", "95"]
    notes: [{row: "5", column: CE, text: a misprint}]
  - number: "6"
    title: Top-1
    metric: test/top1
    select: val/top{k}
    printed: {"5": ["70.0", "69.5"]}
presets:
  smoke:
    set: {train.epochs: 1}
    seeds: [3]
    rows: [{label: "5", let: {k: 2}}]
    columns: [Top-K]
    says: Small.
  none: {rows: ["1"], columns: [CE]}
)yaml";

class Tables {
 public:
  std::filesystem::path write(const std::string& text, const std::string& name = "4.yaml") {
    std::filesystem::create_directories(folder_.path() / "icml2022");
    const auto file = folder_.path() / "icml2022" / name;
    std::ofstream(file) << text;
    return file;
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kTable;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a table's file says what is trained for each cell") {
  Tables files;
  const Table table = read_table(files.write(kTable), "paper");
  CHECK(table.name == "icml2022/4");
  CHECK(table.file_name() == "icml2022-4");
  CHECK(table.settings(1, 0) ==
        Settings{{"train.epochs", "3"}, {"data.batch_size", "7"}, {"loss.name", "cross_entropy"}});
  CHECK(table.settings(0, 1) == Settings{{"train.epochs", "4"}, {"loss.name", "noised_topk"}, {"loss.k", "1"}});
  CHECK(table.substitute(table.parts[0].metric, 1, 0) == "test/top5");
  // A cell that the paper leaves empty is not trained.
  const std::vector<WantedCell> cells = table.wanted_cells();
  REQUIRE(cells.size() == 3);
  CHECK((cells[0].row == 0 && cells[0].column == 0 && cells[1].row == 1));
  const PrintedCell& cell = table.parts[0].printed_at(1, 0);
  CHECK(cell.value == 94.2);
  CHECK(cell.groups == std::vector<double>{1, 2});
  CHECK(table.parts[0].spread == PrintedSpread::kInterval95);
  CHECK(table.parts[1].rows == std::vector<size_t>{1});
  CHECK(table.parts[1].printed_at(0, 0).is_absent());
}

TEST_CASE("a table's grid has each config once, and keeps the checkpoints of every part") {
  Tables files;
  const Table table = read_table(files.write(kTable), "paper");
  const Grid grid = grid_of(table, table.wanted_cells());
  CHECK(grid.base.lexically_normal() == (files.path() / "base.yaml").lexically_normal());
  CHECK(grid.seeds == std::vector<std::string>{"1", "2"});
  REQUIRE(grid.steps.size() == 1);
  CHECK(grid.steps[0].list.size() == 3);
  CHECK(grid.select == "val/top1");
  CHECK(grid.also == std::vector<std::string>{"val/top5"});
}

TEST_CASE("a preset is put over the file, and keeps some rows and columns") {
  Tables files;
  const Table table = read_table(files.write(kTable), "smoke");
  CHECK(table.file_name() == "icml2022-4-smoke");
  CHECK(table.says == "Small.");
  REQUIRE(table.rows.each.size() == 1);
  REQUIRE(table.columns.each.size() == 1);
  CHECK(table.settings(0, 0) == Settings{{"train.epochs", "1"}, {"loss.name", "noised_topk"}, {"loss.k", "2"}});
  CHECK(table.parts[0].printed_at(0, 0).value == 95);
  CHECK(table.parts[1].printed_at(0, 0).value == 69.5);
  CHECK(table.seeds == std::vector<std::string>{"3"});
  // A part without a row that is left goes.
  CHECK(read_table(table.file, "none").parts.size() == 1);
  CHECK_THROWS_WITH(read_table(table.file, "tiny"), Contains("no preset 'tiny'") && Contains("smoke"));
}

TEST_CASE("what is wrong with a table's file is said with its place") {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases{
      {"\"70.0\", \"-\"", "\"70.0\"", "expected a cell for each of the 2 columns, and got 1"},
      {"\"70.0\", \"-\"", "\"70,0\", \"-\"", "'70,0': expected a number"},
      {"(1/2)", "(1/2/3)", "a number for each of `groups`"},
      {"\"1\": [", "\"2\": [", "there is no row '2'"},
      {"row: \"5\", column: CE", "row: \"5\", column: XE", "no such row or column"},
      {"label: \"5\", let: {k: 5}", "label: \"1\", let: {k: 5}", "'1' comes twice"},
      {"loss.k: \"{k}\"", "loss.k: \"{q}\"", "loss.k: {q}: no `let`"},
      {"select: val/top{k}", "select: \"\"", "expected the keys metric"},
      {"spread: interval95", "spread: sd", "expected one of none, interval95, deviation"},
      {"seeds: [1, 2]", "sedes: [1, 2]", "unknown key 'sedes'"},
      {"set: {train.epochs: 3}", "set: {seed: 3}", "seed: the sweep's seeds"},
      {"base: ../base.yaml\n", "", "expected one of the keys base and measure"},
      {"test/few_top{k}", "test/few_top{q}", "test/few_top{q}: no `let`"},
      {"title: A table", "title: A table\nagainst: XE", "against: there is no column 'XE'"}};
  Tables files;
  for (const auto& [from, to, message] : cases) {
    INFO(message);
    const auto file = files.write(replaced(from, to));
    CHECK_THROWS_WITH(read_table(file, "paper"), Contains(message) && Contains("4.yaml:"));
  }
}

TEST_CASE("a table of no cells is refused") {
  Tables files;
  const auto file =
      files.write(replaced("none: {rows: [\"1\"], columns: [CE]}", "none: {rows: [\"1\"], columns: [Top-K]}"));
  CHECK_THROWS_WITH(read_table(file, "none"), Contains("no cell is left"));
}

TEST_CASE("a table is found by its name, and by that of another of the same runs") {
  Tables files;
  files.write(kTable);
  files.write(replaced("number: \"6\"", "number: \"8\""), "10.yaml");
  CHECK(design_names(files.path()) == std::vector<std::string>{"icml2022/4", "icml2022/10"});
  CHECK(find_table(files.path(), "icml2022/4").filename() == "4.yaml");
  CHECK(find_table(files.path(), "icml2022/6").filename() == "4.yaml");
  CHECK(find_table(files.path(), "icml2022/8").filename() == "10.yaml");
  CHECK_THROWS_WITH(find_table(files.path(), "icml2022/44"), Contains("did you mean 'icml2022/4'?"));
}

}  // namespace settrain
