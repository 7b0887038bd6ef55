#include "src/core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <regex>
#include <thread>
#include <vector>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using test::read_file;

namespace {

// The text that `work` writes to stderr, in a process of its own.
template <class Work>
std::string stderr_of(Work work) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "stderr.txt";
  const int code = test::run_in_child([&] {
    ::dup2(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
    work();
    return 0;
  });
  CHECK(code == 0);
  return read_file(file);
}

}  // namespace

TEST_CASE("Lines go to stderr as they are; warnings and errors say so") {
  const std::string text = stderr_of([] {
    log::info("[train] 100% {} %s");
    log::warning("[data] odd");
    log::error("bad");
  });
  CHECK(text == "[train] 100% {} %s\nwarning: [data] odd\nerror: bad\n");
}

TEST_CASE("Work that another process tells of logs errors alone") {
  const std::string text = stderr_of([] {
    log::speak_as_process(1);
    {
      const log::OnlyErrors quiet(true), loud(false);
      log::warning("one");
      log::error("two");
    }
    log::warning("three");
    log::info("four");
  });
  CHECK(text == "error: process 1: two\nwarning: process 1: three\n");
}

TEST_CASE("Text printed before a line comes before it where stdout and stderr are one file") {
  const std::string text = stderr_of([] {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    std::cout << "first\n";
    log::info("second");
    std::cout << "third\n";
    log::info("fourth");
  });
  CHECK(text == "first\nsecond\nthird\nfourth\n");
}

TEST_CASE("The log file has every line with its time, from opening to closing, and is appended to") {
  const test::TemporaryFolder folder;
  const std::string text = stderr_of([&] {
    log::info("before");
    log::open_file(folder / "log.txt");
    log::info("[train] one");
    log::close_file();
    log::info("between");
    log::open_file(folder / "log.txt");
    log::warning("two");
    log::close_file();
    log::close_file();
  });
  CHECK(text == "before\n[train] one\nbetween\nwarning: two\n");
  const std::string time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )";
  CHECK(std::regex_match(read_file(folder / "log.txt"),
                         std::regex(time + R"(info: \[train\] one\n)" + time + R"(warning: two\n)")));
}

TEST_CASE("A line is in the file at once, not at the end") {
  const test::TemporaryFolder folder;
  CHECK(test::run_in_child([&] {
          log::open_file(folder / "log.txt");
          ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
          log::info("here");
          ::raise(SIGKILL);
          return 0;
        }) == 128 + SIGKILL);
  CHECK_THAT(read_file(folder / "log.txt"), Catch::EndsWith("info: here\n"));
}

TEST_CASE("A log file that cannot be opened is an error that names it") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "log.txt");
  CHECK_THROWS_AS(log::open_file(folder / "log.txt"), RunError);
  CHECK_THROWS_WITH(log::open_file(folder / "log.txt"), Catch::Contains("log.txt': "));
}

TEST_CASE("A full disk is warned of once, and lines still reach stderr") {
  const test::TemporaryFolder folder;
  const std::string text = stderr_of([&] {
    test::limit_file_size(400);
    log::open_file(folder / "log.txt");
    for (int i = 0; i < 3; ++i) log::info(std::string(100, 'z'));
    for (int i = 0; i < 3; ++i) log::info("y");
  });
  CHECK(std::count(text.begin(), text.end(), 'z') == 300);
  CHECK_THAT(text, Catch::Contains("warning: the log file misses lines: "));
  CHECK(text.find("misses lines") == text.rfind("misses lines"));
}

TEST_CASE("The guard is called around every line on the terminal") {
  const std::string text = stderr_of([] {
    log::set_terminal_guard({[] { (void)!::write(2, "<", 1); }, [] { (void)!::write(2, ">", 1); }});
    log::info("a");
    log::error("b");
    log::set_terminal_guard({});
    log::info("c");
  });
  CHECK(text == "<a\n><error: b\n>c\n");
}

TEST_CASE("Lines of several threads do not mix") {
  const std::string text = stderr_of([] {
    std::vector<std::thread> threads;
    for (const char letter : {'a', 'b', 'c'}) {
      threads.emplace_back([letter] {
        for (int i = 0; i < 200; ++i) log::info(std::string(50, letter));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::istringstream lines(text);
  int whole = 0;
  for (std::string line; std::getline(lines, line);) whole += line == std::string(50, line[0]) ? 1 : 0;
  CHECK(whole == 600);
}
