// Tests in a process of their own: signals, limits, locks.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>

namespace settrain::test {

/// Runs `work`, which returns an exit code, in a forked child. Returns that code; 128 + N where signal N ended the
/// child; 255 for an exception.
template <class Work>
int run_in_child(Work work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 255;
    try {
      code = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// From now on no file of this process grows beyond `bytes`: writes fail with EFBIG, as they do with ENOSPC on a full
/// disk.
inline void limit_file_size(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace settrain::test
