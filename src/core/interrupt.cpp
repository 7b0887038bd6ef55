#include "src/core/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace settrain {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");

void note(int signal) {
  int none = 0;
  const bool first = caught.compare_exchange_strong(none, signal);
  if (!first && signal == SIGINT) ::_exit(130);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // reads and writes under way are not to fail
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

void ignore_size_signal() {
  std::signal(SIGXFSZ, SIG_IGN);
}

int interrupted() {
  return caught.load();
}

void throw_if_interrupted() {
  if (const int signal = interrupted()) throw Interrupted(signal);
}

}  // namespace settrain
