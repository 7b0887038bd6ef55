#include "src/check/model_check.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/core/error.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

std::vector<CheckRow> check(const std::filesystem::path& file) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  return check_models(registry, at::kCPU, {file});
}

TEST_CASE("the small ResNets agree with Python's PyTorch", "[fast]") {
  const std::string name = GENERATE("resnet8_grey_normalised", "resnet20");
  const auto rows = check(test::golden_path("models/" + name + ".json"));
  CHECK(rows.size() == 7);
  for (const CheckRow& row : rows) {
    INFO(row.name << ", " << row.what << ": " << row.max_error << " > " << row.tolerance << " " << row.note);
    CHECK(row.passed);
  }
}

TEST_CASE("a wrong number in a golden file is found, and a malformed file is named", "[fast]") {
  const auto file = std::filesystem::temp_directory_path() / "settrain_model_check_test.json";
  nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(test::golden_path("models/resnet8_grey_normalised.json")));
  golden["float64"]["gradients"][4]["dot"] = golden["float64"]["gradients"][4]["dot"].get<double>() + 1e-6;
  std::ofstream(file) << golden;
  int64_t failed = 0;
  for (const CheckRow& row : check(file)) failed += row.passed ? 0 : 1;
  CHECK(failed == 1);

  golden.erase("labels");
  std::ofstream(file) << golden;
  CHECK_THROWS_WITH(check(file), Catch::Contains(file.string()) && Catch::Contains("labels"));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace settrain
