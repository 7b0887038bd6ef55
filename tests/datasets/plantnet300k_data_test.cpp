// Real plants in Pl@ntNet-300K's layout, and its published names.
#include <filesystem>
#include <set>

#include "datasets/readers.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

using namespace settrain;

namespace {

std::string data() {
  return test::environment("SETTRAIN_TEST_DATA");
}

}  // namespace

TEST_CASE("121 tree species in the layout of Pl@ntNet-300K", "[data]") {
  SKIP_UNLESS(std::filesystem::exists(data() + "/plants-mini"), "SETTRAIN_TEST_DATA has no plants-mini");
  const auto load = [&](const std::string& train) {
    return test::load_dataset(
        "plantnet300k", {"root=" + data() + "/plants-mini", "names=species_id_2_name.json", "expected.classes=121",
                         "expected.genera=19", "expected.train=" + train, "expected.val=121", "expected.test=242"});
  };
  const Dataset dataset = load("521");
  CHECK(dataset.num_classes() == 121);
  CHECK(dataset.class_names[0] == "Acer campestre");
  CHECK(dataset.class_keys[0] == "1000003");
  CHECK(dataset.superclass_names.size() == 19);
  CHECK(count_classes(dataset.val, 121) == std::vector<int64_t>(121, 1));
  CHECK_THROWS_WITH(load("522"), Catch::Contains("train: 521, expected 522"));
}

TEST_CASE("the published names of Pl@ntNet-300K's species", "[data]") {
  const std::string file = data() + "/lists/plantnet300K_species_id_2_name.json";
  SKIP_UNLESS(std::filesystem::exists(file), "SETTRAIN_TEST_DATA has no lists");
  const auto names = read_species_names(file);
  CHECK(names.size() == 1088);  // more than the 1,081 that have images
  CHECK(names.at("1355868") == "Lactuca virosa L.");
  std::set<std::string> genera;
  for (const auto& [id, name] : names) genera.insert(name.substr(0, name.find(' ')));
  CHECK(genera.size() == 310);
}
