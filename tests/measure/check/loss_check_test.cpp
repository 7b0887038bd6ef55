#include <fstream>
#include <nlohmann/json.hpp>

#include "src/core/error.h"
#include "src/measure/check/checks.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using nlohmann::json;

using test::builtin_losses;

std::filesystem::path golden_file(const std::string& loss) {
  return test::golden_path("losses/" + loss + ".json");
}

/// The rows of the golden file of noised_topk with `edit` applied.
template <class Edit>
std::vector<CheckRow> check_edited(Edit edit) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "edited.json";
  json golden = json::parse(std::ifstream(golden_file("noised_topk")));
  edit(golden);
  std::ofstream(file) << golden;
  return check_losses(builtin_losses(), at::kCPU, {file});
}

TEST_CASE("Every loss agrees with its golden file") {
  for (const std::string& name : builtin_losses().names()) {
    const auto cases = json::parse(std::ifstream(golden_file(name)))["cases"].size();
    const std::vector<CheckRow> rows = check_losses(builtin_losses(), at::kCPU, {golden_file(name)});
    CHECK(rows.size() == 2 * cases);
    for (const CheckRow& row : rows) {
      CAPTURE(row.name, row.what, row.max_error, row.tolerance, row.note);
      CHECK(row.passed);
    }
  }
}

TEST_CASE("A case without a gradient says that it is compared without") {
  const std::vector<CheckRow> rows = check_losses(builtin_losses(), at::kCPU, {golden_file("noised_topk")});
  const auto kink =
      std::find_if(rows.begin(), rows.end(), [](const CheckRow& row) { return row.what == "kink, float64"; });
  REQUIRE(kink != rows.end());
  CHECK_FALSE(kink->note.empty());
}

TEST_CASE("A wrong loss, mean or gradient fails its case and no other") {
  const auto failures = [](const std::vector<CheckRow>& rows) {
    std::vector<std::string> failed;
    for (const CheckRow& row : rows) {
      if (!row.passed) failed.push_back(row.what);
    }
    return failed;
  };
  const std::vector<std::string> expected{"k1_m3_eps_1, float64"};
  const auto add = [](json& value) { value = value.get<double>() + 1e-8; };
  CHECK(failures(check_edited([&](json& file) { add(file["cases"][2]["per_sample"][1]); })) == expected);
  CHECK(failures(check_edited([&](json& file) { add(file["cases"][2]["loss"]); })) == expected);
  CHECK(failures(check_edited([&](json& file) { add(file["cases"][2]["grad_scores"][0][0]); })) == expected);
}

TEST_CASE("Where recorded code disagrees with the paper, the paper's formula counts") {
  const std::vector<CheckRow> rows = check_edited([](json& file) {
    json& golden = file["cases"][2];
    golden["agrees_with_formula"] = false;
    for (const char* key : {"per_sample", "loss", "grad_scores"}) golden["formula"][key] = golden[key];
    golden["loss"] = 99.0;
  });
  for (const CheckRow& row : rows) CHECK(row.passed);
}

TEST_CASE("What no loss of this build can compute is a failed row") {
  const std::vector<CheckRow> unknown = check_edited([](json& file) { file["loss"] = "noised_top"; });
  REQUIRE(unknown.size() == 1);
  CHECK_FALSE(unknown[0].passed);
  CHECK(unknown[0].name == "noised_top");
  for (const auto& [key, named] : {std::pair{"tau", "tau"}, {"k", "loss.k"}, {"num_draws", "noise"}}) {
    CAPTURE(key);
    const std::vector<CheckRow> rows = check_edited([&](json& file) { file["cases"][0]["params"][key] = 4; });
    CHECK_FALSE(rows.front().passed);
    CHECK_THAT(rows.front().note, Catch::Contains(named));
  }
}

TEST_CASE("A missing or malformed golden file is named, with the place in it") {
  using Catch::Contains;
  CHECK_THROWS_AS(check_losses(builtin_losses(), at::kCPU, {"no/such.json"}), DataError);
  CHECK_THROWS_WITH(check_losses(builtin_losses(), at::kCPU, {"no/such.json"}), Contains("no/such.json"));
  CHECK_THROWS_WITH(check_edited([](json& file) { file.erase("cases"); }), Contains("edited.json: "));
  CHECK_THROWS_WITH(check_edited([](json& file) { file["cases"][0].erase("scores"); }),
                    Contains("/cases/0: ") && Contains("'scores'"));
  CHECK_THROWS_WITH(check_edited([](json& file) { file["cases"][1]["scores"][2].erase(0); }),
                    Contains("edited.json: /cases/1/scores/2: ") && Contains(" 10"));
  CHECK_THROWS_WITH(check_edited([](json& file) { file["cases"][1]["labels"][0] = 10; }),
                    Contains("/cases/1/labels/0: ") && Contains("0 to 9") && Contains("10"));
  CHECK_THROWS_WITH(check_edited([](json& file) { file["cases"][1]["loss"] = "x"; }), Contains("/cases/1/loss: "));
}

}  // namespace
}  // namespace settrain
