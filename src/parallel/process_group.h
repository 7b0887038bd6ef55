// The processes of one training, and their collective calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/config/key.h"
#include "src/parallel/launch.h"

namespace settrain {

/// Keys of the section `parallel`.
struct ParallelOptions {
  std::string backend;
  double timeout = 0;      // seconds
  double bucket_size = 0;  // MiB

  /// How long Gloo waits for the other processes, and how long NCCL does. NCCL's watchdog kills the process when its
  /// time is over: before that, Gloo must have failed, and the message that names the failed process must be out.
  std::chrono::milliseconds gloo_timeout() const;
  std::chrono::milliseconds nccl_timeout() const;
  int64_t bucket_bytes() const { return static_cast<int64_t>(bucket_size * (1 << 20)); }

  static config::Keys keys();
};

/// All calls are collective: every process makes the same ones in the same order, and each waits for the others. They
/// throw ParallelError, which names the process that is missing, where one does not come within the timeout or ended;
/// leave() is the only call after it.
class ProcessGroup {
 public:
  /// A process alone, for which nothing has to be sent.
  ProcessGroup();
  /// Waits until all processes of the launch are there. `device`: where the tensors will lie.
  ProcessGroup(const Launch& launch, const ParallelOptions& options, at::Device device);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return rank_; }
  int64_t world_size() const { return world_size_; }
  bool is_first() const { return rank_ == 0; }
  /// The names of the machines, of each process one; empty for a process alone.
  const std::vector<std::string>& hosts() const { return hosts_; }

  /// [world_size, ...]: `mine` of every process, in the order of their ranks. All have one shape and dtype.
  at::Tensor all_gather(const at::Tensor& mine);

  /// `mine` of every process.
  std::vector<std::string> all_gather(const std::string& mine);

  /// [world_size, n / world_size]: row r is part `rank` of what process r gave. `parts` [n], of which each process gets
  /// a share of one size: n is a multiple of the world's size.
  at::Tensor all_to_all(const at::Tensor& parts);

  /// The sum of `mine` over the processes, added in the order of their ranks.
  at::Tensor ordered_all_reduce(const at::Tensor& mine);

  /// Begins to overwrite a contiguous tensor with its sum over the processes, in the backend's order. What it returns
  /// waits for that, and is called before any other use of the tensor.
  std::function<void()> start_all_reduce(const at::Tensor& tensor);

  /// Overwrites the tensors with those of the first process.
  void broadcast(const std::vector<at::Tensor>& tensors);

  /// Has the first process do the work. Where that throws, so does every process: the first the error itself, the
  /// others an AgreedError with its message.
  void first_does(const std::function<void()>& work);

  /// Tells the others, which wait for it, that this process ends before it has come to them.
  static void report_absence(const Launch& launch, const std::string& message) noexcept;

  /// Tells the others that this process ends by that error of its own, and leaves them.
  void report_failure(const std::string& message) noexcept;

  /// Where this process ends since another one does, or all do alike: the others need not wait for it. No other call
  /// may follow. Whoever keeps the store waits a little until the others have read why the training ends.
  void leave() noexcept;

 private:
  struct Connection;

  int64_t rank_ = 0, world_size_ = 1;
  std::vector<std::string> hosts_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace settrain
