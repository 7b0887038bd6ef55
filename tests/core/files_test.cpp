#include "src/core/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using test::read_file;

TEST_CASE("A descriptor closes its file once, when its last owner goes") {
  const int number = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  {
    Descriptor first(number);
    const Descriptor second = std::move(first);
    CHECK_FALSE(first.is_open());
    CHECK(second.get() == number);
    CHECK(::fcntl(number, F_GETFD) >= 0);
  }
  CHECK(::fcntl(number, F_GETFD) == -1);
}

TEST_CASE("write_all writes more than a pipe takes at once") {
  std::array<int, 2> ends;
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string text(1'000'000, 'x');
    ::_exit(write_all(Descriptor(ends[1]), text.data(), text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  const Descriptor input(ends[0]);
  size_t total = 0;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(input.get(), buffer.data(), buffer.size())) > 0;) total += static_cast<size_t>(got);
  CHECK(total == 1'000'000);
}

TEST_CASE("write_all says no with the reason in errno") {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK_FALSE(write_all(full, "x", 1));
  CHECK(errno == ENOSPC);
}

TEST_CASE("File errors say what, where, why, and what to do") {
  CHECK(std::string(file_error("write", "runs/a", ENOSPC).what()) ==
        "cannot write 'runs/a': No space left on device; free some space, or choose another folder");
  CHECK(std::string(file_error("open", "runs/a", EISDIR).what()) == "cannot open 'runs/a': Is a directory");
}

TEST_CASE("Errors about files to read advise nothing about writing") {
  for (const int code : {EACCES, EPERM, EROFS, EIO}) {
    CHECK(std::string(read_error("open", "data/a", code).what()) ==
          "cannot open 'data/a': " + std::generic_category().message(code));
  }
  CHECK(std::string(read_error("open", "~/a", ENOENT).what()).find("~ is not replaced") != std::string::npos);
}

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

namespace {

size_t count_entries(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "no RunError";
}

}  // namespace

TEST_CASE("An atomic file appears at commit, whole and alone in its folder") {
  const test::TemporaryFolder folder;
  AtomicFile file(folder / "a.bin");
  file.write("one ");
  file.write("two", 3);
  CHECK_FALSE(std::filesystem::exists(folder / "a.bin"));
  CHECK(std::filesystem::exists(folder / (".a.bin.tmp-" + std::to_string(::getpid()))));
  file.commit();
  CHECK(read_file(folder / "a.bin") == "one two");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("An atomic file replaces the old one, and readers of the old one keep it") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a", "old");
  std::ifstream reader(folder / "a");
  write_file_atomically(folder / "a", "new");
  CHECK(std::string{std::istreambuf_iterator<char>(reader), {}} == "old");
  CHECK(read_file(folder / "a") == "new");
}

TEST_CASE("An atomic file that is not committed leaves the old one and no temporary") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a", "old");
  { AtomicFile(folder / "a").write("half of the n"); }
  CHECK(read_file(folder / "a") == "old");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("A temporary file that a killed process left is no obstacle") {
  const test::TemporaryFolder folder;
  const std::string left = ".a.tmp-" + std::to_string(::getpid());
  folder.write(left, std::string("longer than what comes now"));
  write_file_atomically(folder / "a", "new");
  CHECK(read_file(folder / "a") == "new");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("A file that shares its data with such a temporary file stays whole") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "last", "needed");
  std::filesystem::create_hard_link(folder / "last", folder / (".best.tmp-" + std::to_string(::getpid())));
  write_file_atomically(folder / "best", "new");
  CHECK(read_file(folder / "last") == "needed");
  CHECK(read_file(folder / "best") == "new");
}

TEST_CASE("A link replaces the old file, and keeps its content when its source is replaced") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "last", "first");
  folder.write("best", std::string("old"));
  folder.write(".best.tmp-" + std::to_string(::getpid()), std::string("left by a killed process"));
  link_file_atomically(folder / "last", folder / "best");
  CHECK(std::filesystem::equivalent(folder / "last", folder / "best"));
  CHECK(read_file(folder / "best") == "first");
  link_file_atomically(folder / "last", folder / "best");  // both are one file already
  CHECK(count_entries(folder.path()) == 2);
  write_file_atomically(folder / "last", "second");
  CHECK(read_file(folder / "best") == "first");
  CHECK(read_file(folder / "last") == "second");
}

TEST_CASE("Where no link can be made there is a copy, and what is wrong is reported") {
  const test::TemporaryFolder folder;
  link_file_atomically("/proc/version", folder / "copy");  // of another file system
  CHECK(read_file(folder / "copy") == read_file("/proc/version"));
  CHECK_THROWS_WITH(link_file_atomically(folder / "none", folder / "copy"),
                    Contains("cannot read") && Contains("none'"));
  CHECK_THROWS_WITH(link_file_atomically(folder / "copy", folder / "away" / "a"), Contains("away/a'"));
  std::filesystem::create_directory(folder / "folder");
  CHECK_THROWS_WITH(link_file_atomically(folder / "copy", folder / "folder"), Contains("cannot write"));
  CHECK(count_entries(folder.path()) == 2);
}

TEST_CASE("A full disk fails the write, keeps the old file and leaves no temporary") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a", "old");
  const int code = test::run_in_child([&] {
    test::limit_file_size(1000);
    AtomicFile file(folder / "a");
    const std::string block(600, 'x');
    file.write(block);
    const std::string message = message_of([&] { file.write(block); });
    if (message.find("cannot write '" + (folder / "a").string() + "': File too large") != 0) return 1;
    if (count_entries(folder.path()) != 1) return 2;
    try {
      file.commit();
    } catch (const std::logic_error&) {
      return 0;
    }
    return 3;
  });
  CHECK(code == 0);
  CHECK(read_file(folder / "a") == "old");
}

TEST_CASE("A folder without write permission is reported with the file's name") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "locked");
  ::chmod((folder / "locked").c_str(), 0555);
  const int code = test::run_in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;  // root may write anywhere
    const std::string message = message_of([&] { write_file_atomically(folder / "locked" / "a", "x"); });
    return message.find("locked/a': Permission denied; choose a folder that this user may write to") !=
                   std::string::npos
               ? 0
               : 2;
  });
  CHECK(code == 0);
}

TEST_CASE("A folder that is missing or a file is reported with the file's name") {
  const test::TemporaryFolder folder;
  folder.write("plain", std::string("x"));
  CHECK_THROWS_WITH(AtomicFile(folder / "none" / "a"), Contains("none/a': No such file or directory"));
  CHECK_THROWS_WITH(AtomicFile(folder / "plain" / "a"), Contains("plain/a': Not a directory"));
}

TEST_CASE("A rename that fails leaves no temporary") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  CHECK_THROWS_AS(write_file_atomically(folder / "a", "x"), RunError);
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("A file name alone means the working folder") {
  const test::TemporaryFolder folder;
  const int code = test::run_in_child([&] {
    std::filesystem::current_path(folder.path());
    write_file_atomically("a", "here");
    return 0;
  });
  CHECK(code == 0);
  CHECK(read_file(folder / "a") == "here");
}

TEST_CASE("A lock held by another process is refused with its id and host, until that process dies") {
  const test::TemporaryFolder folder;
  std::array<int, 2> ready;
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(folder / "lock");
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK_THROWS_WITH(FileLock(folder / "lock"),
                    Contains("'" + folder.path().string() + "' is being written by process " + std::to_string(child) +
                             " on " + host_name()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_NOTHROW(FileLock(folder / "lock"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("A lock excludes a second one of the same process, and ends with its object") {
  const test::TemporaryFolder folder;
  std::optional<FileLock> first(folder / "lock");
  CHECK(test::read_file(folder / "lock") == std::to_string(::getpid()) + " " + host_name() + "\n");
  CHECK_THROWS_AS(FileLock(folder / "lock"), RunError);
  first.reset();
  CHECK_NOTHROW(FileLock(folder / "lock"));
}

TEST_CASE("A moved lock stays locked") {
  const test::TemporaryFolder folder;
  FileLock first(folder / "lock");
  const FileLock second = std::move(first);
  CHECK_THROWS_AS(FileLock(folder / "lock"), RunError);
}

TEST_CASE("A lock file that cannot be made is an error that names it") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(FileLock(folder / "none" / "lock"), Contains("cannot open") && Contains("none/lock"));
}
