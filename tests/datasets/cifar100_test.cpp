#include <algorithm>
#include <set>
#include <string>

#include "datasets/readers.h"
#include "src/core/digest.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

// A record whose red, green and blue planes are filled with r, g and b.
std::string record(int coarse, int fine, char r, char g, char b) {
  return std::string{static_cast<char>(coarse), static_cast<char>(fine)} + std::string(1024, r) + std::string(1024, g) +
         std::string(1024, b);
}

}  // namespace

TEST_CASE("records are read, planes interleaved") {
  const test::TemporaryFolder folder;
  std::string bytes = record(4, 0, 'r', 'g', 'b') + record(19, 99, 'R', 'G', 'B');
  bytes[2 + 1024 + 33] = 'x';  // green, second row, second column of the first
  const Cifar100File content = read_cifar100_file(folder.write("two.bin", bytes), 2);
  CHECK(content.coarse == std::vector<uint8_t>{4, 19});
  CHECK(content.fine == std::vector<uint8_t>{0, 99});
  CHECK(content.sha256 == sha256(bytes));
  REQUIRE(content.pixels.size() == 2 * 3072);
  CHECK(std::string(content.pixels.begin(), content.pixels.begin() + 6) == "rgbrgb");
  CHECK(content.pixels[33 * 3 + 1] == 'x');
  CHECK(std::count(content.pixels.begin(), content.pixels.end(), 'x') == 1);
  CHECK(std::string(content.pixels.begin() + 3072, content.pixels.begin() + 3075) == "RGB");
}

TEST_CASE("files of the wrong size or with wrong labels are refused") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(read_cifar100_file(folder / "absent.bin", 1), Contains("absent.bin"));
  const std::string good = record(4, 0, 'r', 'g', 'b');
  CHECK_THROWS_WITH(read_cifar100_file(folder.write("long.bin", good + "!"), 1),
                    Contains("long.bin") && Contains("got 3075"));
  CHECK_THROWS_WITH(read_cifar100_file(folder.write("short.bin", good), 2),
                    Contains("2 records") && Contains("got 3074"));
  CHECK_THROWS_WITH(read_cifar100_file(folder.write("c.bin", good + record(20, 0, 'r', 'g', 'b')), 2),
                    Contains("record 1"));
  CHECK_THROWS_WITH(read_cifar100_file(folder.write("f.bin", record(0, 100, 'r', 'g', 'b')), 1),
                    Contains("fine label 100"));
  CHECK_THROWS_WITH(test::load_dataset("cifar100", {"root=" + folder.path().string()}),
                    Contains("no file train.bin") && Contains("cifar-100-binary.tar.gz"));
}

TEST_CASE("the official names") {
  const Cifar100Names& names = cifar100_names();
  REQUIRE(names.fine.size() == 100);
  REQUIRE(names.coarse.size() == 20);
  CHECK(std::is_sorted(names.coarse.begin(), names.coarse.end()));
  CHECK(std::set<std::string>(names.fine.begin(), names.fine.end()).size() == 100);
  CHECK(names.fine[0] == "apple");
  CHECK(names.fine[99] == "worm");
  CHECK(names.coarse[static_cast<size_t>(names.coarse_of[0])] == "fruit_and_vegetables");
  for (int64_t coarse = 0; coarse < 20; ++coarse)
    CHECK(std::count(names.coarse_of.begin(), names.coarse_of.end(), coarse) == 5);
}
