#include "src/run_folder/metrics_log.h"

#include <cmath>
#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using test::read_file;

namespace {

struct Files {
  test::TemporaryFolder folder;
  std::filesystem::path jsonl = folder / "metrics.jsonl", csv = folder / "metrics.csv";
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("Rows are lines of JSON and lines of a table") {
  const Files files;
  MetricsLog log(files.jsonl, files.csv);
  CHECK(read_file(files.csv) == "step,epoch\n");
  log.append({100, 1, {{"train/loss", 2.5}, {"time/wall_s", 12}}});
  log.append({200, 2, {{"train/loss", 0.1}, {"time/wall_s", kNaN}}});
  CHECK(read_file(files.jsonl) ==
        "{\"step\":100,\"epoch\":1,\"train/loss\":2.5,\"time/wall_s\":12.0}\n"
        "{\"step\":200,\"epoch\":2,\"train/loss\":0.1,\"time/wall_s\":null}\n");
  CHECK(read_file(files.csv) == "step,epoch,train/loss,time/wall_s\n100,1,2.5,12\n200,2,0.1,nan\n");
}

TEST_CASE("A new column joins the table, empty where it was not known") {
  const Files files;
  MetricsLog log(files.jsonl, files.csv);
  log.append({1, 0, {{"train/loss", 1}}});
  log.append({2, 1, {{"val/top5", 0.5}, {"train/loss", 2}}});
  log.append({3, 1, {{"val/top5", 0.75}}});
  CHECK(read_file(files.csv) == "step,epoch,train/loss,val/top5\n1,0,1,\n2,1,2,0.5\n3,1,,0.75\n");
}

TEST_CASE("Numbers come back to the last bit") {
  const Files files;
  const std::vector<double> numbers{0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789, 1e21};
  MetricsRow row{7, 3, {}};
  for (size_t i = 0; i < numbers.size(); ++i)
    row.values.emplace_back(std::string("v").append(std::to_string(i)), numbers[i]);
  MetricsLog(files.jsonl, files.csv).append(row);
  const MetricsLog again(files.jsonl, files.csv);
  REQUIRE(again.rows().size() == 1);
  CHECK(again.rows()[0].step == 7);
  CHECK(again.rows()[0].epoch == 3);
  CHECK(again.rows()[0].values == row.values);
  CHECK(std::signbit(again.rows()[0].values[4].second));
  std::istringstream table(read_file(files.csv));
  std::string line, cell;
  std::getline(table, line);
  std::getline(table, cell, ',');
  std::getline(table, cell, ',');
  for (const double number : numbers) {
    std::getline(table, cell, ',');
    CHECK(std::strtod(cell.c_str(), nullptr) == number);
  }
}

TEST_CASE("A value that is not finite is null, and NaN when it is read") {
  const Files files;
  MetricsLog(files.jsonl, files.csv).append({1, 1, {{"a", kNaN}, {"b", std::numeric_limits<double>::infinity()}}});
  CHECK(read_file(files.jsonl) == "{\"step\":1,\"epoch\":1,\"a\":null,\"b\":null}\n");
  const MetricsLog again(files.jsonl, files.csv);
  CHECK(std::isnan(again.rows()[0].values[0].second));
  CHECK(std::isnan(again.rows()[0].values[1].second));
}

TEST_CASE("Cutting back to an offset gives the files as they were") {
  const Files files;
  MetricsLog log(files.jsonl, files.csv);
  log.append({1, 1, {{"a", 1}}});
  const uint64_t offset = log.offset();
  const std::string jsonl = read_file(files.jsonl), csv = read_file(files.csv);
  CHECK(offset == jsonl.size());
  log.append({2, 2, {{"a", 2}, {"b", 3}}});
  log.truncate_to(offset);
  CHECK(read_file(files.jsonl) == jsonl);
  CHECK(read_file(files.csv) == csv);
  CHECK(log.rows().size() == 1);
  CHECK_THROWS_WITH(log.truncate_to(offset + 1), Contains("metrics.jsonl' has"));
  CHECK_THROWS_WITH(log.truncate_to(offset - 1), Contains("is not the end of a line"));
}

TEST_CASE("A half line, left by a killed process, is removed; the table is rebuilt") {
  const Files files;
  files.folder.write("metrics.jsonl", std::string("{\"step\":1,\"epoch\":1,\"a\":1.5}\n{\"step\":2,\"ep"));
  files.folder.write("metrics.csv", std::string("step,epoch,a\n1,1,1.5\n2,"));
  MetricsLog log(files.jsonl, files.csv);
  log.append({3, 2, {{"a", 4}}});
  CHECK(read_file(files.jsonl) == "{\"step\":1,\"epoch\":1,\"a\":1.5}\n{\"step\":3,\"epoch\":2,\"a\":4.0}\n");
  CHECK(read_file(files.csv) == "step,epoch,a\n1,1,1.5\n3,2,4\n");
}

TEST_CASE("A line that is not a row is named with its number, and left alone") {
  for (const std::string bad : {"nonsense", "[1]", "{\"step\":\"one\"}", "{\"a\":\"b\"}", ""}) {
    const Files files;
    const std::string text = std::string("{\"step\":1,\"epoch\":1}\n").append(bad).append("\n");
    files.folder.write("metrics.jsonl", text);
    CHECK_THROWS_WITH(MetricsLog(files.jsonl, files.csv), Contains("metrics.jsonl', line 2: "));
    CHECK_THROWS_AS(MetricsLog(files.jsonl, files.csv), RunError);
    CHECK(read_file(files.jsonl) == text);
  }
}

TEST_CASE("Rows that a finished run has lost are reported, and not taken for none") {
  const Files files;
  CHECK(read_metrics(files.jsonl, 0).empty());
  CHECK_THROWS_WITH(read_metrics(files.jsonl, 2), Contains("metrics.jsonl' is missing, and the run has finished 2"));
  files.folder.write("metrics.jsonl", std::string("{\"step\":1,\"epoch\":1}\n{\"step\":2,\"ep"));
  CHECK(read_metrics(files.jsonl, 1).size() == 1);
  CHECK_THROWS_WITH(read_metrics(files.jsonl, 2), Contains("metrics.jsonl' has 1 rows, and the run has finished 2"));
  CHECK_THROWS_AS(read_metrics(files.jsonl, 2), RunError);
}

TEST_CASE("Names that would break the table are a mistake in the program") {
  const Files files;
  MetricsLog log(files.jsonl, files.csv);
  for (const std::string name : {"", "step", "epoch"}) {
    CHECK_THROWS_AS(log.append({1, 1, {{name, 1.0}}}), std::invalid_argument);
  }
  CHECK(read_file(files.jsonl).empty());
}

TEST_CASE("Names with commas are quoted in the table") {
  const Files files;
  MetricsLog log(files.jsonl, files.csv);
  log.append({1, 1, {{"val/top1", 0.5}, {"val/coverage@conformal:raps(lambda=0.01,k=5):0.1", 0.25}}});
  CHECK(read_file(files.csv) ==
        "step,epoch,val/top1,\"val/coverage@conformal:raps(lambda=0.01,k=5):0.1\"\n1,1,0.5,0.25\n");
}

TEST_CASE("A full disk is an error that leaves whole lines") {
  const Files files;
  const int code = test::run_in_child([&] {
    test::limit_file_size(100);
    MetricsLog log(files.jsonl, files.csv);
    try {
      for (int i = 0; i < 10; ++i) log.append({i, i, {{"train/loss", 1.0 / 3}}});
    } catch (const RunError& error) {
      return std::string(error.what()).find("metrics.jsonl") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  CHECK(code == 0);
  const std::string text = read_file(files.jsonl);
  CHECK(text == "{\"step\":0,\"epoch\":0,\"train/loss\":0.3333333333333333}\n");
}
