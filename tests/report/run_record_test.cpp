#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/core/error.h"
#include "src/report/report_parts.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

config::Entry entry(const std::string& path, config::Value default_value, config::Value value) {
  config::Key key;
  key.name = path.substr(path.rfind('.') + 1);
  key.default_value = std::move(default_value);
  return {path, key, std::move(value), {"file.yaml:1:1"}};
}

TEST_CASE("keys that are not at their defaults are named, with what defaults refer to filled in") {
  const config::Config config({entry("name", std::string("${file}"), std::string("quick")),
                               entry("run.dir", std::string("runs/${name}"), std::string("runs/quick")),
                               entry("data.root", std::string("${name}/data"), std::string("elsewhere")),
                               entry("loss.k", int64_t{5}, int64_t{2}), entry("loss.epsilon", 1.0, 1.0)});
  const std::vector<ChangedKey> changed = changed_keys(config);
  REQUIRE(changed.size() == 2);
  CHECK(changed[0].path == "data.root");
  CHECK(changed[0].value == "elsewhere");
  CHECK(changed[1].path == "loss.k");
  CHECK(changed[1].value == "2");
  CHECK(changed[1].default_value == "5");
}

TEST_CASE("a run that selects on no metric shows the accuracies of the splits that it watches") {
  const config::Config config({entry("select", config::Texts{}, config::Texts{"last"}),
                               entry("eval.during_training", config::Texts{"val"}, config::Texts{"test"}),
                               entry("eval.top_k", config::Integers{1, 3, 5, 10}, config::Integers{1, 5})});
  CHECK(curve_names(config) == std::vector<std::string>{"train/loss", "train/lr", "test/top1", "test/top5"});
}

TEST_CASE("curves are read from a log that still grows, and what a row lacks is null") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  std::ofstream(file) << "{\"step\": 5, \"epoch\": 1, \"train/loss\": 2.5, \"val/top1\": null}\n"
                         "{\"step\": 10, \"epoch\": 2, \"train/loss\": 1.5}\n{\"step\": 15, \"epo";
  const auto size = std::filesystem::file_size(file);
  const ordered_json curves = curves_json(file, 0, {"train/loss", "val/top1"});
  CHECK(curves["epoch"] == ordered_json::parse("[1, 2]"));
  CHECK(curves["values"]["train/loss"] == ordered_json::parse("[2.5, 1.5]"));
  CHECK(ordered_json::parse(curves.dump())["values"]["val/top1"] == ordered_json::parse("[null, null]"));
  CHECK(std::filesystem::file_size(file) == size);
  CHECK(curves_json(folder.path() / "missing", 0, {"train/loss"})["epoch"].empty());
  CHECK_THROWS_AS(curves_json(file, 3, {"train/loss"}), RunError);
  std::ofstream(file) << "no JSON\n";
  CHECK_THROWS_AS(curves_json(file, 0, {"train/loss"}), RunError);
}

}  // namespace
}  // namespace settrain
