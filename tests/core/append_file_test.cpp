#include "src/core/append_file.h"

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using test::read_file;

TEST_CASE("An append file goes on where it ended") {
  const test::TemporaryFolder folder;
  AppendFile(folder / "a").append("one\n");
  AppendFile file(folder / "a");
  CHECK(file.size() == 4);
  file.append("two\n");
  file.sync();
  CHECK(file.size() == 8);
  CHECK(read_file(folder / "a") == "one\ntwo\n");
}

TEST_CASE("An append file can be cut back, and not beyond its end") {
  const test::TemporaryFolder folder;
  AppendFile file(folder / "a");
  file.append("one\ntwo\n");
  file.truncate_to(4);
  file.append("three\n");
  CHECK(read_file(folder / "a") == "one\nthree\n");
  CHECK_THROWS_WITH(file.truncate_to(11), Catch::Contains("a' has 10 bytes, expected at least 11"));
}

TEST_CASE("A record that does not fit on the disk is not there at all") {
  const test::TemporaryFolder folder;
  const int code = test::run_in_child([&] {
    test::limit_file_size(10);
    AppendFile file(folder / "a");
    file.append("1234567\n");
    try {
      file.append("12345\n");
    } catch (const RunError&) {
      file.append("9\n");
      return file.size() == 10 ? 0 : 1;
    }
    return 2;
  });
  CHECK(code == 0);
  CHECK(read_file(folder / "a") == "1234567\n9\n");
}

TEST_CASE("An append file that cannot be opened is named") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(AppendFile(folder / "none" / "a"), Catch::Contains("none/a': No such file"));
}
