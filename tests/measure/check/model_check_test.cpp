#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/measure/check/checks.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

std::vector<CheckRow> check(const std::filesystem::path& file) {
  return check_models(test::builtin_registries().models, at::kCPU, {file});
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

TEST_CASE("the small ResNets agree with Python's PyTorch") {
  for (const char* name : {"resnet8_grey_normalised", "resnet20"}) check_all(name + std::string(".json"), 10);
}

// `settrain check models` has all of them; tests/e2e runs it.
TEST_CASE("the references' models agree with what was recorded of them, initial weights too") {
  for (const char* name : {"resnet18", "densenet_bc_40_40_normed"}) check_all(name + std::string(".json"), 11);
}

TEST_CASE("grouped convolutions, ConvNeXt and the vision transformer agree with torchvision, initial weights too") {
  for (const char* name : {"resnext50_32x4d", "convnext_tiny", "vit_b_16"})
    check_all(name + std::string("_64px.json"), 11);
}

TEST_CASE("EfficientNets agree with torchvision, and Lite0 with a Python twin of efficientnet_pytorch's") {
  check_all("efficientnet_b0_64px.json", 11);
  check_all("efficientnet_v2_s_64px.json", 10);
  check_all("efficientnet_lite0_72px.json", 10);
}

TEST_CASE("Inceptions agree with torchvision and timm, initial weights too") {
  for (const char* name : {"inception_v3_107px", "inception_resnet_v2_107px"})
    check_all(name + std::string(".json"), 10);
}

TEST_CASE("networks in a row agree with torchvision, initial weights too") {
  for (const char* name : {"alexnet_64px", "squeezenet1_0_48px"}) check_all(name + std::string(".json"), 10);
}

TEST_CASE("MobileNets and ShuffleNet agree with torchvision, initial weights too") {
  for (const char* name : {"mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0"})
    check_all(name + std::string("_64px.json"), 11);
}

TEST_CASE("vision transformers' parts agree with timm and OpenCLIP, initial weights too") {
  for (const char* name : {"vit_small_parts", "vit_dinov2_parts", "vit_no_token_parts", "vit_clip_parts"})
    check_all(name + std::string(".json"), 10);
  check_all("vit_reg4_parts.json", 11);
}

TEST_CASE("the other models have torchvision's or timm's names and shapes") {
  for (const char* name : {"resnet101",          "resnet152",          "wide_resnet50_2", "resnext50_32x4d",
                           "densenet161",        "densenet169",        "densenet201",     "convnext_tiny",
                           "vit_b_16",           "convnext_small",     "convnext_base",   "convnext_large",
                           "efficientnet_b0",    "efficientnet_b1",    "efficientnet_b2", "efficientnet_b3",
                           "efficientnet_b4",    "efficientnet_v2_s",  "mobilenet_v2",    "mobilenet_v3_small",
                           "mobilenet_v3_large", "shufflenet_v2_x1_0", "alexnet",         "inception_resnet_v2",
                           "inception_v3",       "inception_v4",       "squeezenet1_0",   "vgg11",
                           "wide_resnet101_2"}) {
    check_all(name + std::string(".params.txt"), 1);
  }
}

TEST_CASE("a wrong entry of a list is found, and a list without a head line is named") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "list.params.txt";
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
}

TEST_CASE("initial weights of another deviation or distribution are found") {
  const test::TemporaryFolder temporary;
  const auto folder = temporary.path();
  std::filesystem::copy_file(test::golden_path("models/densenet_bc_40_40.json"), folder / "densenet_bc_40_40.json");
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
}

TEST_CASE("a wrong number in a golden file is found, and a malformed file is named") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "golden.json";
  nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(test::golden_path("models/resnet8_grey_normalised.json")));
  golden["float64"]["gradients"][4]["dot"] = golden["float64"]["gradients"][4]["dot"].get<double>() + 1e-6;
  std::ofstream(file) << golden;
  int64_t failed = 0;
  for (const CheckRow& row : check(file)) failed += row.passed ? 0 : 1;
  CHECK(failed == 1);

  nlohmann::json changed = golden;
  changed["float64"]["gradients"][4]["dot"] = golden["float64"]["gradients"][4]["dot"].get<double>() - 1e-6;
  const auto failures = [&] {
    std::ofstream(file) << changed;
    const auto rows = check(file);
    return std::count_if(rows.begin(), rows.end(), [](const CheckRow& row) { return !row.passed; });
  };
  CHECK(failures() == 0);
  changed["float64"]["buffers_after_train"].erase(2);
  CHECK(failures() == 1);
  changed["float64"]["gradients"].erase(3);
  CHECK(failures() == 3);  // in float32, too
  changed["input_shape"] = {2, 1};
  CHECK_THROWS_WITH(failures(), Catch::Contains(file.string()) && Catch::Contains("input_shape"));
  changed["input_shape"] = golden["input_shape"];
  changed["labels"] = {3, 700};
  CHECK_THROWS_WITH(failures(), Catch::Contains(file.string()));

  golden.erase("labels");
  std::ofstream(file) << golden;
  CHECK_THROWS_WITH(check(file), Catch::Contains(file.string()) && Catch::Contains("labels"));
}

TEST_CASE("an error that is no number is the worst") {
  WorstError worst;
  worst.add(2, "two");
  worst.add(1, "one");
  CHECK(worst.where == "two");
  CHECK(worst.row("model", "values", 2).passed);
  worst.add(std::nan(""), "NaN");
  CHECK(worst.error > 1e300);
  CHECK(worst.row("model", "values", 1e300).note == "NaN");
}

}  // namespace
}  // namespace settrain
