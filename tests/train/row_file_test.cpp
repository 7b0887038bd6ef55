#include "src/train/row_file.h"

#include <ATen/ops/arange.h>

#include <filesystem>
#include <vector>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

constexpr int64_t kFeatureRows = 5, kFeatureWidth = 3;

RowFile file_in(const test::TemporaryFolder& folder, FeatureTable::Stored stored = FeatureTable::Stored::kFloat32) {
  return {folder.path() / "features" / "0a1b", kFeatureRows, kFeatureWidth, stored};
}

// Rows `first` to `last` - 1: their numbers count up from `first` * kFeatureWidth.
at::Tensor feature_rows(int64_t first, int64_t last) {
  return at::arange(first * kFeatureWidth, last * kFeatureWidth, at::kFloat).view({last - first, kFeatureWidth});
}

std::vector<float> feature_row(const RowFile& file, int64_t number) {
  const FeatureTable table(file.path(), RowFile::kHeaderBytes, kFeatureRows, kFeatureWidth,
                           FeatureTable::Stored::kFloat32);
  std::vector<float> values(kFeatureWidth);
  table.read(number, values.data());
  return values;
}

TEST_CASE("a file of features has its name once all rows are there") {
  const test::TemporaryFolder folder;
  RowFile file = file_in(folder);
  CHECK(file.open(2) == 0);
  file.append(feature_rows(0, 2));
  file.append(feature_rows(2, 5));
  CHECK_FALSE(file.is_whole());
  file.finish();
  CHECK(file.is_whole());
  CHECK(feature_row(file, 4) == std::vector<float>{12, 13, 14});
  CHECK(file_in(folder).open(2) == kFeatureRows);
  CHECK_FALSE(file_in(folder, FeatureTable::Stored::kBfloat16).is_whole());
}

TEST_CASE("a part is gone on with at a whole batch") {
  const test::TemporaryFolder folder;
  {
    RowFile file = file_in(folder);
    CHECK(file.open(2) == 0);
    file.append(feature_rows(0, 3));
  }
  RowFile file = file_in(folder);
  CHECK(file.open(2) == 2);
  file.append(feature_rows(2, 5));
  file.finish();
  CHECK(feature_row(file, 2) == std::vector<float>{6, 7, 8});
}

TEST_CASE("while one fills the file another waits, and finds it whole") {
  const test::TemporaryFolder folder;
  RowFile first = file_in(folder), second = file_in(folder);
  CHECK(first.open(1) == 0);
  CHECK_FALSE(second.open(1));
  first.append(feature_rows(0, kFeatureRows));
  CHECK_FALSE(second.open(1));
  first.finish();
  CHECK(second.open(1) == kFeatureRows);
}

TEST_CASE("what a process that ended left is free for the next") {
  const test::TemporaryFolder folder;
  RowFile second = file_in(folder);
  {
    RowFile first = file_in(folder);
    CHECK(first.open(1) == 0);
    CHECK_FALSE(second.open(1));
  }
  CHECK(second.open(1) == 0);
}

TEST_CASE("a damaged file is told and made anew") {
  const test::TemporaryFolder folder;
  RowFile file = file_in(folder);
  CHECK(file.open(1) == 0);
  file.append(feature_rows(0, kFeatureRows));
  file.finish();
  std::filesystem::resize_file(file.path(), RowFile::kHeaderBytes + 7);
  const std::string told = test::logged([&] { CHECK(file_in(folder).open(1) == 0); });
  CHECK_THAT(told, Contains("is damaged"));
  CHECK_FALSE(std::filesystem::exists(file.path()));
}

TEST_CASE("a file that cannot be made says how to do without") {
  const test::TemporaryFolder folder;
  folder.write("features", "no folder");
  CHECK_THROWS_AS(file_in(folder).open(1), RunError);
  CHECK_THROWS_WITH(file_in(folder).open(1), Contains("--set data.cache_features=off"));
}

}  // namespace
}  // namespace settrain
