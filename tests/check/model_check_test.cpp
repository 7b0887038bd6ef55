#include "src/check/model_check.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/core/error.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

std::vector<CheckRow> check(const std::filesystem::path& file) {
  ModelRegistry registry("model");
  register_builtin_models(registry);
  return check_models(registry, at::kCPU, {file});
}

void check_all(const std::string& file, size_t number_of_rows) {
  CAPTURE(file);
  const auto rows = check(test::golden_path("models/" + file));
  CHECK(rows.size() == number_of_rows);
  for (const CheckRow& row : rows) {
    INFO(row.name << ", " << row.what << ": " << row.max_error << " > " << row.tolerance << " " << row.note);
    CHECK(row.passed);
  }
}

TEST_CASE("the small ResNets agree with Python's PyTorch", "[fast]") {
  for (const char* name : {"resnet8_grey_normalised", "resnet20"}) check_all(name + std::string(".json"), 10);
}

TEST_CASE("the references' models agree with what was recorded of them, initial weights too", "[slow]") {
  for (const char* name : {"resnet18", "resnet34", "resnet50", "resnet50_normed", "densenet121", "densenet_bc_40_40",
                           "densenet_bc_40_40_normed"}) {
    check_all(name + std::string(".json"), 11);
  }
}

TEST_CASE("the other models have torchvision's names and shapes", "[fast]") {
  for (const char* name : {"resnet101", "resnet152", "wide_resnet50_2", "densenet161", "densenet169", "densenet201"}) {
    check_all(name + std::string(".params.txt"), 1);
  }
}

TEST_CASE("a wrong entry of a list is found, and a list without a head line is named", "[fast]") {
  const auto file = std::filesystem::temp_directory_path() / "settrain_model_check_test.params.txt";
  std::stringstream text;
  text << std::ifstream(test::golden_path("models/resnet20.params.txt")).rdbuf();
  std::string list = text.str();
  const size_t place = list.find("[64,64,3,3]");
  std::ofstream(file) << list.replace(place, 11, "[64,64,5,5]");
  const auto rows = check(file);
  CHECK(rows.size() == 1);
  CHECK(rows[0].max_error == 1);
  CHECK_THAT(rows[0].note, Catch::Contains("[64,64,5,5]") && Catch::Contains("[64,64,3,3]"));
  std::ofstream(file) << "0\tfloat32\t[1]\tx\n";
  CHECK_THROWS_WITH(check(file), Catch::Contains(file.string() + ":1"));
  std::filesystem::remove(file);
}

TEST_CASE("initial weights of another deviation or distribution are found", "[fast]") {
  const auto folder = std::filesystem::temp_directory_path() / "settrain_initial_weights_test";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(test::golden_path("models/densenet_bc_40_40.json"), folder / "densenet_bc_40_40.json",
                             std::filesystem::copy_options::overwrite_existing);
  const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(test::golden_path("models/densenet_bc_40_40.init.json")));
  const auto row_with = [&](const std::string& key, const nlohmann::json& value) {
    nlohmann::json changed = golden;
    changed["parameters"][0][key] = value;  // a convolution's
    std::ofstream(folder / "densenet_bc_40_40.init.json") << changed;
    return check(folder / "densenet_bc_40_40.json")[0];
  };
  const double deviation = golden["parameters"][0]["expected_std"];
  CHECK(row_with("expected_std", deviation).passed);
  CHECK_FALSE(row_with("expected_std", 1.1 * deviation).passed);
  CHECK_FALSE(row_with("distribution", "uniform(-b, b)").passed);
  CHECK_FALSE(row_with("name", "block1.nothing").passed);
  std::filesystem::remove_all(folder);
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
