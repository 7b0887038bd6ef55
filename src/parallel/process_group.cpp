#include "src/parallel/process_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/cuda/cuda_library.h"
#include "src/parallel/membership.h"

namespace settrain {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr const char *kAuto = "auto", *kGloo = "gloo", *kNccl = "nccl";

// The search for the failed process takes up to twice kPatience, and leaving the others as long again. NCCL waits three
// times as long as both, since the store may be slow.
constexpr Milliseconds kNcclGrace = 12 * kPatience;

// Errors say what goes wrong; c10d would log lines of its own before, with their stacks.
void keep_c10d_quiet() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
}

// The network interface that PyTorch's variable names, or that of the host's name.
std::shared_ptr<gloo::transport::Device> network() {
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                   : c10d::ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

config::Keys ParallelOptions::keys() {
  using config::key;
  return {
      key("backend", &ParallelOptions::backend, kAuto,
          "What several processes talk through: nccl between GPUs, gloo between CPUs; auto: by the device.")
          .one_of({kAuto, kGloo, kNccl})
          .free(),
      key("timeout", &ParallelOptions::timeout, 300.0,
          "How long a process waits for the others, at the start and within a step, before it ends with an error that "
          "names the missing one. That one was killed is noticed after about five seconds.")
          .at_least(1)
          .at_most(1e6)
          .in("seconds")
          .free(),
      key("bucket_size", &ParallelOptions::bucket_size, 25.0,
          "Without train.deterministic: gradients are added over the processes in buckets of that size, each while the "
          "backward pass goes on.")
          .above(0)
          .at_most(1e6)
          .in("MiB")
          .free()};
}

Milliseconds ParallelOptions::gloo_timeout() const {
  return Milliseconds(static_cast<int64_t>(1000 * timeout));
}

Milliseconds ParallelOptions::nccl_timeout() const {
  return gloo_timeout() + kNcclGrace;
}

struct ProcessGroup::Connection {
  Milliseconds timeout;
  Membership membership;
  c10::intrusive_ptr<c10d::Backend> on_host, on_device;  // one and the same on a CPU

  Connection(const Launch& launch, const ParallelOptions& options)
      : timeout(options.gloo_timeout()), membership(launch, timeout) {}

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ~Connection() {
    try {
      if (on_device && on_device != on_host) on_device->shutdown();
    } catch (const std::exception&) {  // its calls are done, or have said what went wrong
    }
  }

  // Meets the others, who are told what fails here.
  void open(const Launch& launch, const ParallelOptions& options, at::Device where) {
    try {
      auto gloo = c10d::ProcessGroupGloo::Options::create(timeout);
      gloo->devices.push_back(network());
      membership.meet();
      connect(launch, where.is_cuda() && options.backend != kGloo, gloo, options.nccl_timeout());
    } catch (const ParallelError&) {
      leave();
      throw;
    } catch (const std::exception& error) {
      report_failure(cause(error));
      throw ParallelError(fmt::format("process {} of {}: {}", launch.rank, launch.world_size, cause(error)));
    }
  }

  void connect(const Launch& launch, bool with_nccl, const c10::intrusive_ptr<c10d::ProcessGroupGloo::Options>& gloo,
               Milliseconds nccl_timeout) {
    const auto rank = static_cast<int>(launch.rank), world = static_cast<int>(launch.world_size);
    during("connecting",
           [&] { on_host = c10::make_intrusive<c10d::ProcessGroupGloo>(membership.store(), rank, world, gloo); });
    on_device = on_host;
    if (!with_nccl) return;
    // 2: after an error NCCL's watchdog ends the calls. By default it ends the process, before the failed process is
    // named.
    ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", /*overwrite=*/0);
    during("connecting GPUs", [&] {
      on_device = cuda_calls().connect_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl", membership.store()), rank,
                                            world, nccl_timeout);
    });
  }

  // The backend that carries a tensor: numbers of the CPU do not wait for a GPU.
  const c10::intrusive_ptr<c10d::Backend>& of(const at::Tensor& tensor) const {
    return tensor.is_cpu() ? on_host : on_device;
  }

  // Runs a collective call; where it fails, finds the process that is to blame.
  template <class Call>
  void during(const char* what, const Call& call) {
    membership.begin_call();
    wait_for(what, call);
  }

  // The rest of one that has begun.
  template <class Call>
  void wait_for(const char* what, const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    try {
      call();
    } catch (const std::exception& error) {
      const bool is_overdue = std::chrono::steady_clock::now() - start >= timeout;
      throw ParallelError(membership.reason_for(fmt::format("{}: {}", what, cause(error)), is_overdue));
    }
  }

  void report_failure(const std::string& message) noexcept {
    try {
      membership.report_failure(message);
    } catch (const std::exception&) {  // the store is gone
    }
    leave();
  }

  void leave() noexcept {
    try {
      if (on_device && on_device != on_host) on_device->abort();
      on_device.reset();  // the others' calls fail now
      on_host.reset();
      membership.leave();
    } catch (const std::exception&) {  // the store is gone, or a reader
    }
  }
};

ProcessGroup::ProcessGroup() = default;

ProcessGroup::ProcessGroup(const Launch& launch, const ParallelOptions& options, at::Device device)
    : rank_(launch.rank), world_size_(launch.world_size) {
  if (options.backend == kNccl && !device.is_cuda())
    throw KeyError("parallel.backend", "nccl is for GPUs; expected auto or gloo");
  if (world_size_ == 1) return;
  keep_c10d_quiet();
  connection_ = std::make_unique<Connection>(launch, options);
  connection_->open(launch, options, device);
  hosts_ = all_gather(host_name());
}

ProcessGroup::~ProcessGroup() = default;

at::Tensor ProcessGroup::all_gather(const at::Tensor& mine) {
  if (!connection_) return mine.unsqueeze(0);
  at::Tensor input = mine.contiguous().view({-1});
  at::Tensor all = at::empty({world_size_ * mine.numel()}, mine.options());
  connection_->during("gathering", [&] { connection_->of(mine)->_allgather_base(all, input)->wait(); });
  std::vector<int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), world_size_);
  return all.view(shape);
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& mine) {
  if (!connection_) return {mine};
  const at::Tensor sizes = all_gather(at::full({1}, static_cast<int64_t>(mine.size()), at::kLong));
  at::Tensor bytes = at::zeros({std::max<int64_t>(1, sizes.max().item<int64_t>())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr<uint8_t>(), mine.data(), mine.size());
  const at::Tensor all = all_gather(bytes);
  std::vector<std::string> texts;
  for (int64_t other = 0; other < world_size_; ++other) {
    const auto* const text = reinterpret_cast<const char*>(all[other].const_data_ptr<uint8_t>());
    texts.emplace_back(text, static_cast<size_t>(sizes[other][0].item<int64_t>()));
  }
  return texts;
}

at::Tensor ProcessGroup::all_to_all(const at::Tensor& parts) {
  if (!connection_) return parts.unsqueeze(0);
  at::Tensor input = parts.contiguous();
  at::Tensor output = at::empty({world_size_, parts.size(0) / world_size_}, parts.options());
  at::Tensor flat = output.view({-1});
  std::vector<int64_t> even;
  connection_->during("exchanging gradients",
                      [&] { connection_->of(parts)->alltoall_base(flat, input, even, even)->wait(); });
  return output;
}

at::Tensor ProcessGroup::ordered_all_reduce(const at::Tensor& mine) {
  const at::Tensor all = all_gather(mine);
  at::Tensor sum = all[0];
  for (int64_t rank = 1; rank < world_size_; ++rank) sum = sum + all[rank];
  return sum;
}

std::function<void()> ProcessGroup::start_all_reduce(const at::Tensor& tensor) {
  if (!connection_) return [] {};
  std::vector<at::Tensor> one{tensor};
  c10::intrusive_ptr<c10d::Work> work;
  connection_->during("adding gradients", [&] { work = connection_->of(tensor)->allreduce(one); });
  return [this, work] { connection_->wait_for("adding gradients", [&] { work->wait(); }); };
}

void ProcessGroup::broadcast(const std::vector<at::Tensor>& tensors) {
  if (!connection_) return;
  for (const at::Tensor& tensor : tensors) {
    std::vector<at::Tensor> one{tensor.detach().contiguous()};
    connection_->during("taking the first process' tensors", [&] { connection_->of(tensor)->broadcast(one)->wait(); });
    tensor.detach().copy_(one[0]);
  }
}

void ProcessGroup::first_does(const std::function<void()>& work) {
  if (!connection_) return work();
  std::exception_ptr problem;
  std::string message;
  if (is_first()) {
    try {
      work();
    } catch (const std::exception& error) {
      problem = std::current_exception();
      message = error.what();
    }
  }
  message = all_gather(message).front();
  if (problem) std::rethrow_exception(problem);
  if (!message.empty()) throw AgreedError("process 0: " + message);
}

void ProcessGroup::report_absence(const Launch& launch, const std::string& message) noexcept {
  if (launch.world_size == 1) return;
  keep_c10d_quiet();
  try {
    Membership membership(launch, kPatience);
    membership.report_failure(message);
    membership.leave();
  } catch (const std::exception&) {  // nobody is there
  }
}

void ProcessGroup::report_failure(const std::string& message) noexcept {
  if (connection_) connection_->report_failure(message);
}

void ProcessGroup::leave() noexcept {
  if (connection_) connection_->leave();
}

}  // namespace settrain
