#include "src/core/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"

using namespace settrain;
using test::run_in_child;

TEST_CASE("SIGINT, SIGTERM and SIGHUP are noted, and the process goes on") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CHECK(run_in_child([&] {
            catch_interrupts();
            if (interrupted() != 0) return 1;
            std::raise(signal);
            return interrupted() == signal ? 0 : 2;
          }) == 0);
  }
}

TEST_CASE("A SIGHUP that nohup has the process ignore stays ignored") {
  CHECK(run_in_child([] {
          std::signal(SIGHUP, SIG_IGN);
          catch_interrupts();
          std::raise(SIGHUP);
          return interrupted();
        }) == 0);
}

TEST_CASE("A noted signal is thrown where the program asks") {
  CHECK(run_in_child([] {
          catch_interrupts();
          throw_if_interrupted();
          std::raise(SIGTERM);
          try {
            throw_if_interrupted();
          } catch (const Interrupted& stop) {
            return stop.signal() == SIGTERM ? 0 : 1;
          }
          return 2;
        }) == 0);
}

TEST_CASE("A SIGINT after the first signal ends the process with 130") {
  for (const int first : {SIGINT, SIGTERM}) {
    CHECK(run_in_child([&] {
            catch_interrupts();
            std::raise(first);
            std::raise(SIGINT);
            return 0;
          }) == 130);
  }
}

TEST_CASE("A second SIGTERM changes nothing") {
  CHECK(run_in_child([] {
          catch_interrupts();
          std::raise(SIGINT);
          std::raise(SIGTERM);
          return interrupted() == SIGINT ? 0 : 1;
        }) == 0);
}

TEST_CASE("A file over the size limit is an error of write and not a signal") {
  CHECK(run_in_child([] {
          ignore_size_signal();
          const rlimit none{0, 0};
          ::setrlimit(RLIMIT_FSIZE, &none);
          const int file = ::open("/tmp", O_TMPFILE | O_WRONLY, 0600);
          if (file < 0) return 1;
          return ::write(file, "x", 1) == -1 && errno == EFBIG ? 0 : 2;
        }) == 0);
}
