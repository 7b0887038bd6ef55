#include "src/parallel/process_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "src/core/error.h"
#include "src/core/file_lock.h"

#ifdef SETTRAIN_HAS_CUDA
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace settrain {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr const char *kAuto = "auto", *kGloo = "gloo", *kNccl = "nccl";
constexpr Milliseconds kBetweenBeats{1000};
// A process that has not been heard of for so long is taken for dead or hanging.
constexpr int64_t kBeatsMissed = 5;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// c10d's and gloo's own messages begin with places in their sources.
std::string cause(const std::exception& error) {
  std::string line = first_line(error.what());
  while (line.starts_with('[')) {
    const size_t end = line.find("] ");
    if (end == std::string::npos) break;
    line.erase(0, end + 2);
  }
  return line;
}

std::string key_of(const char* what, int64_t rank) {
  return fmt::format("{}/{}", what, rank);
}

Milliseconds in_milliseconds(double seconds) {
  return Milliseconds(static_cast<int64_t>(1000 * seconds));
}

// What goes wrong is told by errors; c10d's own lines, with their stacks, would come before.
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

bool wants_nccl(const ParallelOptions& options, at::Device device) {
  if (options.backend == kGloo) return false;
  if (options.backend == kNccl && !device.is_cuda())
    throw KeyError("parallel.backend", "nccl is for GPUs; expected auto or gloo");
  return device.is_cuda();
}

c10::intrusive_ptr<c10d::Store> connect(const Launch& launch, Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.isServer = launch.rank == 0 && !launch.launcher_keeps_store;
  options.timeout = timeout;
  options.waitWorkers = false;
  try {
    return c10::make_intrusive<c10d::TCPStore>(launch.host, options);
  } catch (const std::exception& error) {
    throw ParallelError(fmt::format("process {} of {} cannot {} the store at {}:{}: {}", launch.rank, launch.world,
                                    options.isServer ? "open" : "reach", launch.host, launch.port, cause(error)));
  }
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
          "names the missing one. That one was killed is noticed at once.")
          .at_least(1)
          .in("seconds")
          .free(),
      key("bucket_size", &ParallelOptions::bucket_size, 25.0,
          "Without train.deterministic: gradients are added over the processes in buckets of that size, each while the "
          "backward pass goes on.")
          .above(0)
          .in("MiB")
          .free()};
}

struct ProcessGroup::Connection {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Store> beats;                 // of the thread's own: a store serves one request at a time
  c10::intrusive_ptr<c10d::Backend> on_host, on_device;  // one and the same on a CPU
  Milliseconds timeout;
  int64_t rank, world;
  bool keeps_store;
  std::mutex mutex;
  std::condition_variable ended;
  bool is_ending = false;
  std::thread heart;

  Connection(const Launch& launch, const ParallelOptions& options, at::Device where)
      : Connection(connect(launch, in_milliseconds(options.timeout)), launch, options, where) {}

  Connection(const c10::intrusive_ptr<c10d::Store>& shared, const Launch& launch, const ParallelOptions& options,
             at::Device where)
      : store(c10::make_intrusive<c10d::PrefixStore>("settrain/" + launch.attempt, shared)),
        beats(c10::make_intrusive<c10d::PrefixStore>("settrain/" + launch.attempt, shared->clone())),
        timeout(in_milliseconds(options.timeout)),
        rank(launch.rank),
        world(launch.world),
        keeps_store(launch.rank == 0 && !launch.launcher_keeps_store) {
    meet();
    heart = std::thread([this] { beat(); });
    auto gloo = c10d::ProcessGroupGloo::Options::create(timeout);
    gloo->devices.push_back(network());
    during("connecting", [&] {
      on_host =
          c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rank), static_cast<int>(world), gloo);
    });
    on_device = on_host;
#ifdef SETTRAIN_HAS_CUDA
    if (!wants_nccl(options, where)) return;
    auto nccl = c10d::ProcessGroupNCCL::Options::create();
    nccl->timeout = timeout;
    on_device = c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>("nccl", store),
                                                            static_cast<int>(rank), static_cast<int>(world), nccl);
#else
    wants_nccl(options, where);
#endif
  }

  // What talks for a tensor: numbers of the CPU do not wait for a GPU.
  const c10::intrusive_ptr<c10d::Backend>& of(const at::Tensor& tensor) const {
    return tensor.is_cpu() ? on_host : on_device;
  }

  ~Connection() {
    {
      const std::lock_guard lock(mutex);
      is_ending = true;
    }
    ended.notify_all();
    if (heart.joinable()) heart.join();
  }

  // Waits until every process has come, and says which has not.
  void meet() {
    store->set(key_of("here", rank), "1");
    for (int64_t other = 0; other < world; ++other) {
      try {
        store->wait({key_of("here", other)}, timeout);
      } catch (const std::exception&) {
        throw ParallelError(fmt::format("process {} of {} has not come within {} s (parallel.timeout)", other, world,
                                        timeout.count() / 1000));
      }
    }
  }

  // Counts up a number in the store, so that the others see that this process lives.
  void beat() {
    std::unique_lock lock(mutex);
    while (!is_ending) {
      try {
        beats->add(key_of("beat", rank), 1);
      } catch (const std::exception&) {
        return;  // the store is gone, which the next collective call will say
      }
      ended.wait_for(lock, kBetweenBeats, [this] { return is_ending; });
    }
  }

  // Runs a collective call; where it fails, finds out who is to blame.
  template <class Call>
  void during(const char* what, const Call& call) {
    try {
      call();
    } catch (const std::exception& error) {
      throw ParallelError(blame(what, cause(error)));
    }
  }

  std::string blame(const char* what, const std::string& error) {
    try {
      std::vector<std::string> said;
      for (int64_t other = 0; other < world; ++other) {
        if (!store->check({key_of("failed", other)})) continue;
        said.push_back(fmt::format("process {}: {}", other, store->get_to_str(key_of("failed", other))));
      }
      leave();
      if (!said.empty()) return fmt::format("{}", fmt::join(said, "; "));
      const std::vector<int64_t> silent = silent_ones();
      if (!silent.empty()) {
        return fmt::format("process {} of {} was killed or hangs ({}: {})", fmt::join(silent, ", "), world, what,
                           error);
      }
    } catch (const std::exception&) {
      return fmt::format("process 0 of {}, or the launcher, which keeps the store, was killed ({}: {})", world, what,
                         error);
    }
    return fmt::format("{}: {}", what, error);
  }

  // Tells the others that this process ends, since another one did.
  void leave() {
    store->set(key_of("left", rank), "1");
  }

  // Until the others have read why this process ends, and no longer than that takes those that live.
  void wait_for_readers() {
    std::vector<std::string> left;
    for (int64_t other = 0; other < world; ++other) {
      if (other != rank) left.push_back(key_of("left", other));
    }
    store->wait(left, kBeatsMissed * kBetweenBeats);
  }

  // Those that have not counted up for a while, though they have not left by themselves.
  std::vector<int64_t> silent_ones() {
    const auto beats_now = [&] {
      std::vector<int64_t> counts;
      for (int64_t other = 0; other < world; ++other) counts.push_back(store->add(key_of("beat", other), 0));
      return counts;
    };
    const std::vector<int64_t> before = beats_now();
    std::this_thread::sleep_for(kBeatsMissed * kBetweenBeats);
    const std::vector<int64_t> after = beats_now();
    std::vector<int64_t> silent;
    for (int64_t other = 0; other < world; ++other) {
      const bool beats_on = after[static_cast<size_t>(other)] != before[static_cast<size_t>(other)];
      if (!beats_on && !store->check({key_of("left", other)})) silent.push_back(other);
    }
    return silent;
  }
};

ProcessGroup::ProcessGroup() = default;

ProcessGroup::ProcessGroup(const Launch& launch, const ParallelOptions& options, at::Device device)
    : rank_(launch.rank), world_(launch.world) {
  if (world_ == 1) return;
  keep_c10d_quiet();
  connection_ = std::make_unique<Connection>(launch, options, device);
  hosts_ = gather(host_name());
}

ProcessGroup::~ProcessGroup() = default;

at::Tensor ProcessGroup::gather(const at::Tensor& mine) {
  if (!connection_) return mine.unsqueeze(0);
  at::Tensor input = mine.contiguous().view({-1});
  at::Tensor all = at::empty({world_ * mine.numel()}, mine.options());
  connection_->during("gathering", [&] { connection_->of(mine)->_allgather_base(all, input)->wait(); });
  std::vector<int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), world_);
  return all.view(shape);
}

std::vector<std::string> ProcessGroup::gather(const std::string& mine) {
  if (!connection_) return {mine};
  const at::Tensor sizes = gather(at::full({1}, static_cast<int64_t>(mine.size()), at::kLong));
  at::Tensor bytes = at::zeros({std::max<int64_t>(1, sizes.max().item<int64_t>())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr<uint8_t>(), mine.data(), mine.size());
  const at::Tensor all = gather(bytes);
  std::vector<std::string> texts;
  for (int64_t other = 0; other < world_; ++other) {
    const auto* const text = reinterpret_cast<const char*>(all[other].const_data_ptr<uint8_t>());
    texts.emplace_back(text, static_cast<size_t>(sizes[other][0].item<int64_t>()));
  }
  return texts;
}

at::Tensor ProcessGroup::exchange(const at::Tensor& parts) {
  if (!connection_) return parts.unsqueeze(0);
  at::Tensor input = parts.contiguous();
  at::Tensor output = at::empty({world_, parts.size(0) / world_}, parts.options());
  at::Tensor flat = output.view({-1});
  std::vector<int64_t> even;
  connection_->during("exchanging gradients",
                      [&] { connection_->of(parts)->alltoall_base(flat, input, even, even)->wait(); });
  return output;
}

at::Tensor ProcessGroup::sum(const at::Tensor& mine) {
  const at::Tensor all = gather(mine);
  at::Tensor sum = all[0];
  for (int64_t rank = 1; rank < world_; ++rank) sum = sum + all[rank];
  return sum;
}

std::function<void()> ProcessGroup::start_sum(const at::Tensor& tensor) {
  if (!connection_) return [] {};
  std::vector<at::Tensor> one{tensor};
  c10::intrusive_ptr<c10d::Work> work;
  connection_->during("adding gradients", [&] { work = connection_->of(tensor)->allreduce(one); });
  return [this, work] { connection_->during("adding gradients", [&] { work->wait(); }); };
}

void ProcessGroup::take_from_first(const std::vector<at::Tensor>& tensors) {
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
  message = gather(message).front();
  if (problem) std::rethrow_exception(problem);
  if (message.empty()) return;
  connection_->leave();
  throw ParallelError("process 0: " + message);
}

void ProcessGroup::report_failure(const std::string& message) noexcept {
  if (!connection_) return;
  try {
    connection_->store->set(key_of("failed", rank_), first_line(message));
    connection_->on_device.reset();  // the others' calls fail now
    connection_->on_host.reset();
    if (connection_->keeps_store) connection_->wait_for_readers();
  } catch (const std::exception&) {  // the store is gone, or a reader
  }
}

}  // namespace settrain
