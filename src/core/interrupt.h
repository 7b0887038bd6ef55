// SIGINT, SIGTERM and SIGHUP, as a request to stop.
#pragma once

#include <exception>

namespace settrain {

/// Thrown once a signal asked to stop and the work in hand is done. No Error, since nothing went wrong.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}

  int signal() const { return signal_; }
  const char* what() const noexcept override { return "stopped by a signal"; }

 private:
  int signal_;
};

/// From now on SIGINT (Ctrl-C), SIGTERM and, unless it is ignored (nohup), SIGHUP (a closed terminal) only note the
/// request; the program answers it at its next step by ending cleanly. A SIGINT after that ends the process at once
/// with exit code 130.
void catch_interrupts();

/// Ignores SIGXFSZ: a file over the size limit is from now on an error of write(), as a full disk is.
void ignore_size_signal();

/// The first signal caught (SIGINT, SIGTERM or SIGHUP), or 0.
int interrupted();

/// Throws Interrupted where a signal was caught.
void throw_if_interrupted();

}  // namespace settrain
