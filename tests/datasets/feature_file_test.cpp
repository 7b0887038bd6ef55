#include "datasets/feature_file.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/formats/safetensors.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weight_bytes.h"

namespace settrain {
namespace {

using Catch::Contains;

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct FeatureBytes {
  Dtype dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

// 3 rows of 2 features with labels.
std::map<std::string, FeatureBytes> three_rows() {
  return {{"features", {Dtype::kFloat32, {3, 2}, raw<float>({1, 2, 3, 4, -5, 0.5F})}},
          {"labels", {Dtype::kInt64, {3}, raw<int64_t>({0, 1, 0})}}};
}

std::filesystem::path write_features(const test::TemporaryFolder& folder,
                                     const std::map<std::string, FeatureBytes>& tensors,
                                     const std::map<std::string, std::string>& metadata = {}) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) entries.push_back({name, tensor.dtype, tensor.shape});
  write_safetensors(folder / "f.safetensors", entries, metadata,
                    [&](const SafetensorsEntry& entry, AtomicFile& file) { file.write(tensors.at(entry.name).bytes); });
  return folder / "f.safetensors";
}

std::vector<float> row_of(const FeatureTable& table, int64_t row) {
  std::vector<float> values(static_cast<size_t>(table.width()));
  table.read(row, values.data());
  return values;
}

std::string refusal(const std::map<std::string, FeatureBytes>& tensors,
                    const std::map<std::string, std::string>& metadata = {}) {
  const test::TemporaryFolder folder;
  try {
    read_feature_file(write_features(folder, tensors, metadata));
  } catch (const DataError& error) {
    return error.what();
  }
  return "none";
}

std::string npy_file(const std::string& descr, const std::string& order, const std::string& shape,
                     const std::string& bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + test::little_endian(static_cast<uint16_t>(header.size())) + header +
         bytes;
}

}  // namespace

TEST_CASE("a file of features has rows, labels and names") {
  const test::TemporaryFolder folder;
  const FeatureFile file = read_feature_file(write_features(folder, three_rows(),
                                                            {{"class_names", R"(["oak", "elm"])"},
                                                             {"paths", R"(["a.jpg", "b.jpg", "c.jpg"])"},
                                                             {"checkpoint.sha256", "abc"}}));
  CHECK(file.features->size() == 3);
  CHECK(row_of(*file.features, 0) == std::vector<float>{1, 2});
  CHECK(row_of(*file.features, 2) == std::vector<float>{-5, 0.5F});
  CHECK(file.labels == std::vector<int64_t>{0, 1, 0});
  CHECK(file.class_names == std::vector<std::string>{"oak", "elm"});
  CHECK(file.paths == std::vector<std::string>{"a.jpg", "b.jpg", "c.jpg"});
  CHECK(file.model == "abc");
  CHECK(file.digest.size() == 64);
}

TEST_CASE("features of every type of floats have the same values") {
  const test::TemporaryFolder folder;
  auto tensors = three_rows();
  tensors["features"] =
      GENERATE(FeatureBytes{Dtype::kFloat64, {3, 2}, raw<double>({1, 2, 3, 4, -5, 0.5})},
               FeatureBytes{Dtype::kFloat16, {3, 2}, raw<uint16_t>({0x3c00, 0x4000, 0x4200, 0x4400, 0xc500, 0x3800})},
               FeatureBytes{Dtype::kBfloat16, {3, 2}, raw<uint16_t>({0x3f80, 0x4000, 0x4040, 0x4080, 0xc0a0, 0x3f00})});
  const FeatureFile file = read_feature_file(write_features(folder, tensors));
  CHECK(row_of(*file.features, 1) == std::vector<float>{3, 4});
  CHECK(row_of(*file.features, 2) == std::vector<float>{-5, 0.5F});
}

TEST_CASE("features and texts of NumPy are read, in either order of memory") {
  const test::TemporaryFolder folder;
  const std::string names = raw<uint32_t>({'o', 'a', 'k', 0xe9, 0, 0});  // "oak", "é"
  folder.write("f.npz", test::ZipBytes()
                            .add({"features.npy", npy_file("<f4", "True", "(3, 2)", raw<float>({1, 3, 5, 2, 4, 6}))})
                            .add({"labels.npy", npy_file("|u1", "False", "(3,)", std::string("\0\1\1", 3))})
                            .add({"class_names.npy", npy_file("<U3", "False", "(2,)", names)})
                            .bytes());
  const FeatureFile file = read_feature_file(folder / "f.npz");
  CHECK(row_of(*file.features, 1) == std::vector<float>{3, 4});
  CHECK(file.labels == std::vector<int64_t>{0, 1, 1});
  CHECK(file.class_names == std::vector<std::string>{"oak", "\xc3\xa9"});
  CHECK(file.paths.empty());
}

TEST_CASE("a number that is NaN or infinite is refused, with its row") {
  const float bad = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  auto tensors = three_rows();
  tensors["features"].bytes = raw<float>({1, 2, 3, bad, 5, 6});
  CHECK_THAT(refusal(tensors), Contains("f.safetensors") && Contains("row 1") && Contains("column 1"));
}

TEST_CASE("labels that no class has are refused") {
  auto tensors = three_rows();
  CHECK_THAT(refusal(tensors, {{"class_names", R"(["oak"])"}}), Contains("row 1") && Contains("is 1"));
  tensors["labels"].bytes = raw<int64_t>({0, 1, -1});
  CHECK_THAT(refusal(tensors), Contains("row 2") && Contains("is -1"));
}

TEST_CASE("shapes and types that do not fit are refused") {
  auto tensors = three_rows();
  tensors["labels"] = {Dtype::kInt64, {2}, raw<int64_t>({0, 1})};
  CHECK_THAT(refusal(tensors), Contains("labels") && Contains("[2]") && Contains("[3]"));
  tensors["labels"] = {Dtype::kFloat32, {3}, raw<float>({0, 1, 1})};
  CHECK_THAT(refusal(tensors), Contains("labels") && Contains("float32"));
  tensors = three_rows();
  tensors["features"].shape = {3, 2, 1};
  CHECK_THAT(refusal(tensors), Contains("3, 2, 1"));
  tensors["features"] = {Dtype::kInt32, {3, 2}, std::string(24, '\0')};
  CHECK_THAT(refusal(tensors), Contains("int32"));
  tensors.erase("features");
  CHECK_THAT(refusal(tensors), Contains("'features'"));
}

TEST_CASE("metadata that is no list of texts, or has too few, is refused") {
  CHECK_THAT(refusal(three_rows(), {{"class_names", "oak"}}), Contains("class_names"));
  CHECK_THAT(refusal(three_rows(), {{"paths", "[1, 2, 3]"}}), Contains("paths"));
  CHECK_THAT(refusal(three_rows(), {{"paths", R"(["a"])"}}), Contains("1 paths") && Contains("3 rows"));
}

TEST_CASE("a file of features that is cut off is refused") {
  const test::TemporaryFolder folder;
  const auto file = write_features(folder, three_rows());
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 4);
  CHECK_THROWS_AS(read_feature_file(file), DataError);
  CHECK_THROWS_AS(FeatureTable(file, 0, 1000, 1000, FeatureTable::Stored::kFloat32), RunError);
}

TEST_CASE("what is written is read, in either format") {
  const test::TemporaryFolder folder;
  const FeatureArrays rows{.width = 2,
                           .features = {0.5F, -1.0F, 2.0F, 3.0F, 1e-30F, 0.0F},
                           .labels = {1, 0, 1},
                           .class_names = {"oak", "\"elm\""},
                           .paths = {"a.png", "b/\xc3\xa4.png", "c.png"},
                           .model = "0123"};
  for (const std::string name : {"rows.safetensors", "rows.npz"}) {
    write_feature_file(folder / name, rows);
    const FeatureFile read = read_feature_file(folder / name);
    std::vector<float> row(2), all;
    for (int64_t i = 0; i < read.features->size(); ++i) {
      read.features->read(i, row.data());
      all.insert(all.end(), row.begin(), row.end());
    }
    CHECK(all == rows.features);
    CHECK(read.labels == rows.labels);
    CHECK(read.class_names == rows.class_names);
    CHECK(read.paths == rows.paths);
    CHECK(read.model == rows.model);
    const std::filesystem::path again = folder / ("again-" + name);
    write_feature_file(again, rows);
    CHECK(read_feature_file(again).digest == read.digest);  // the same bytes
  }
  FeatureArrays odd = rows;
  odd.paths[2] = "bad \xff.png";
  write_feature_file(folder / "odd.safetensors", odd);
  CHECK(read_feature_file(folder / "odd.safetensors").paths[2] == "bad \xef\xbf\xbd.png");
  write_feature_file(folder / "bare.npz", {.width = 3, .features = {1, 2, 3}});
  const FeatureFile bare = read_feature_file(folder / "bare.npz");
  CHECK(bare.labels.empty());
  CHECK(bare.model.empty());
}

TEST_CASE("a file that cannot be written is refused before there are features") {
  CHECK_THROWS_AS(check_feature_file("rows.csv", {}), ConfigError);
  CHECK_NOTHROW(check_feature_file("rows.safetensors", {"a.png"}));
  const std::vector<std::string> many(16, std::string(1 << 20, 'a'));  // as much as a whole header
  CHECK_THROWS_AS(check_feature_file("rows.safetensors", many), ConfigError);
  CHECK_NOTHROW(check_feature_file("rows.npz", many));
}

}  // namespace settrain
