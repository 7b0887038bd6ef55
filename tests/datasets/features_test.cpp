// The data set `features`.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "datasets/registry.h"
#include "src/config/load.h"
#include "src/config/schema.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/formats/safetensors.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

// Writes rows of `width` numbers, (row + column), with these labels.
std::string write_rows(const test::TemporaryFolder& folder, const std::string& name, int64_t width,
                       const std::vector<int64_t>& labels, const std::map<std::string, std::string>& metadata = {}) {
  std::vector<float> values;
  for (int64_t row = 0; row < std::ssize(labels); ++row) {
    for (int64_t column = 0; column < width; ++column) values.push_back(static_cast<float>(row + column));
  }
  const std::vector<SafetensorsEntry> entries{{"features", Dtype::kFloat32, {std::ssize(labels), width}},
                                              {"labels", Dtype::kInt64, {std::ssize(labels)}}};
  write_safetensors(folder / name, entries, metadata, [&](const SafetensorsEntry& entry, AtomicFile& file) {
    if (entry.name == "features") file.write(values.data(), values.size() * sizeof(float));
    if (entry.name == "labels") file.write(labels.data(), labels.size() * sizeof(int64_t));
  });
  return (folder / name).string();
}

Dataset load_rows(std::vector<std::string> settings) {
  settings.insert(settings.begin(), "data.name=features");
  config::Schema schema;
  schema.sections.push_back({"data", "", {}, "name", "features", config::variants_of(test::builtin_datasets())});
  return test::builtin_datasets().at("features").make(config::load(schema, {}, settings));
}

}  // namespace

TEST_CASE("features of three files are three splits, with their rows as ids") {
  const test::TemporaryFolder folder;
  const std::map<std::string, std::string> names{{"class_names", R"(["oak", "elm", "ash"])"}};
  const Dataset data = load_rows({"data.train=" + write_rows(folder, "a.safetensors", 5, {0, 1, 0, 1}, names),
                                  "data.val=" + write_rows(folder, "b.safetensors", 5, {1, 0}, names),
                                  "data.test=" + write_rows(folder, "c.safetensors", 5, {1}, names)});
  CHECK(data.class_names == std::vector<std::string>{"oak", "elm", "ash"});
  CHECK((data.channels == 1 && data.height == 1 && data.width == 5));
  CHECK(data.train.ids == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(data.val.labels == std::vector<int64_t>{1, 0});
  CHECK(data.test.size() == 1);
  std::vector<float> row(5);
  data.train.images->features()->read(3, row.data());
  CHECK(row == std::vector<float>{3, 4, 5, 6, 7});
}

TEST_CASE("without a file of them, validation rows are held out, and there is no test split") {
  const test::TemporaryFolder folder;
  const std::string train = "data.train=" + write_rows(folder, "a.safetensors", 2, {0, 1, 2, 0, 1, 2});
  const Dataset data = load_rows({train, "data.val_size=2"});
  CHECK(data.class_names == std::vector<std::string>{"0", "1", "2"});
  CHECK((data.train.size() == 4 && data.val.size() == 2 && data.test.size() == 0));
  CHECK(data.digest != load_rows({train, "data.val_size=3"}).digest);
  CHECK_THROWS_WITH(load_rows({train, "data.val_size=2", "data.val=" + (folder / "a.safetensors").string()}),
                    Contains("data.val_size") && Contains("data.val"));
  CHECK_THROWS_WITH(load_rows({"data.train=/no/such.npz"}), Contains("data.train") && Contains("/no/such.npz"));
}

TEST_CASE("files of features that do not belong together are refused, both named") {
  const test::TemporaryFolder folder;
  const std::string train =
      "data.train=" + write_rows(folder, "a.safetensors", 5, {0, 1}, {{"checkpoint.sha256", "x"}});
  const auto refused = [&](const std::string& other) {
    try {
      load_rows({train, "data.val=" + other});
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  CHECK_THAT(refused(write_rows(folder, "b.safetensors", 4, {0})),
             Contains("a.safetensors") && Contains("b.safetensors") && Contains("5 and 4"));
  CHECK_THAT(refused(write_rows(folder, "c.safetensors", 5, {0}, {{"checkpoint.sha256", "y"}})),
             Contains("c.safetensors") && Contains("x and y"));
  CHECK_THAT(refused(write_rows(folder, "d.safetensors", 5, {0}, {{"class_names", R"(["oak"])"}})),
             Contains("d.safetensors"));
}

}  // namespace settrain
