#include <string>

#include "datasets/readers.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "tests/datasets/idx_test_files.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

// The error of reading a file with that content, which must name the file; empty where there is none.
std::string complaint(const std::string& content, int rank, int64_t max_values = 1000000) {
  const test::TemporaryFolder folder;
  try {
    read_idx(folder.write("some-idx-file", content), rank, max_values);
  } catch (const DataError& error) {
    CHECK_THAT(error.what(), Contains("some-idx-file"));
    return error.what();
  }
  return "";
}

const std::string kValues = "abcdefghijklmnopqrstuvwx";

}  // namespace

TEST_CASE("an IDX file is read, compressed or not") {
  const std::string bytes = test::idx_bytes({2, 3, 4}, kValues);
  const test::TemporaryFolder folder;
  for (const std::string& content : {bytes, test::gzip(bytes)}) {
    const IdxArray array = read_idx(folder.write("file", content), 3);
    CHECK(array.sizes == std::vector<int64_t>{2, 3, 4});
    CHECK(std::string(array.values.begin(), array.values.end()) == kValues);
    CHECK(array.sha256 == sha256(bytes));
  }
}

TEST_CASE("an IDX file longer than one piece is read") {
  std::string values(3000001, '\0');
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<char>(i * 31 % 251);
  const test::TemporaryFolder folder;
  const IdxArray array = read_idx(folder.write("file", test::gzip(test::idx_bytes({3000001}, values))), 1);
  CHECK(std::string(array.values.begin(), array.values.end()) == values);
}

TEST_CASE("an IDX file may be empty of values") {
  const test::TemporaryFolder folder;
  CHECK(read_idx(folder.write("file", test::idx_bytes({0, 28, 28}, "")), 3).values.empty());
}

TEST_CASE("files that are not what they say are refused") {
  const std::string good = test::idx_bytes({2, 3, 4}, kValues);
  CHECK_THAT(complaint("", 3), Contains("shorter"));
  CHECK_THAT(complaint(good, 1),
             Contains("expected an IDX file of unsigned bytes with 1 dimensions") && Contains("00 00 08 03"));
  std::string floats = good;
  floats[2] = '\x0D';
  CHECK_THAT(complaint(floats, 3), Contains("00 00 0d 03"));
  CHECK_THAT(complaint("hello, world: no IDX file", 3), Contains("68 65 6c 6c"));
  CHECK_THAT(complaint(good.substr(0, 10), 3), Contains("header ends too early"));
  CHECK_THAT(complaint(good.substr(0, good.size() - 1), 3), Contains("declares 24 values, the file holds 23"));
  CHECK_THAT(complaint(good + "y", 3), Contains("more than the 24 values"));
}

TEST_CASE("a header cannot make the reader take memory that the file does not fill") {
  const std::string huge = test::idx_bytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x");
  CHECK_THAT(complaint(huge, 3), Contains("more than 1000000 values"));
  CHECK_THAT(complaint(test::idx_bytes({1000001}, "x"), 1), Contains("more than 1000000 values"));
  CHECK_THAT(complaint(test::idx_bytes({1000000}, "x"), 1), Contains("the file holds 1"));
}

TEST_CASE("a damaged compressed file is refused wherever it is cut") {
  const std::string whole = test::gzip(test::idx_bytes({2, 3, 4}, kValues));
  for (size_t length = 0; length < whole.size(); ++length) {
    INFO("cut to " << length << " of " << whole.size() << " bytes");
    CHECK_FALSE(complaint(whole.substr(0, length), 3).empty());
  }
}

TEST_CASE("a compressed file with a wrong checksum is refused") {
  std::string damaged = test::gzip(test::idx_bytes({2, 3, 4}, kValues));
  damaged[damaged.size() - 8] ^= 1;  // the checksum's first byte
  CHECK_THAT(complaint(damaged, 3), Contains("incorrect data check"));
}

TEST_CASE("a file that is not there is named") {
  CHECK_THROWS_WITH(read_idx("/no/such/file", 1), Contains("/no/such/file") && Contains("No such file"));
}
