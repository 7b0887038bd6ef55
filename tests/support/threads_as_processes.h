// Process groups within a test. Threads stand in for processes, since a group uses no other state of the process.
#pragma once

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/parallel/process_group.h"
#include "tests/support/catch2.h"

namespace settrain::test {

/// c10d's flight recorder is off: the process has only one, which does not support groups in several threads.
inline const bool kIsFlightRecorderOff = ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1) == 0;

/// A free port of this machine.
inline uint16_t free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  const bool is_known = ::bind(listener, plain, size) == 0 && ::getsockname(listener, plain, &size) == 0;
  ::close(listener);
  if (!is_known) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

inline ParallelOptions gloo(double timeout = 20) {
  return {.backend = "gloo", .timeout = timeout};
}

inline Launch launch_of(int64_t rank, int64_t world, uint16_t port) {
  return {.rank = rank, .world_size = world, .local_rank = rank, .host = "127.0.0.1", .port = port};
}

/// Does `work` in `world` threads, each with a group of its own; none may throw. All threads share ATen's generator, so
/// random tensors must be drawn before.
inline void in_processes(int64_t world, const std::function<void(ProcessGroup&)>& work) {
  const uint16_t port = free_port();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<size_t>(world));
  for (int64_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ProcessGroup group(launch_of(rank, world, port), gloo(), at::kCPU);
        work(group);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(errors == std::vector<std::string>(static_cast<size_t>(world)));
}

}  // namespace settrain::test
