// CUDA on the CPU, for tests only: runs the device code of losses/kernels/*.cuh without a GPU, slowly and strictly.
// Must be included before that code.
//
// Every thread of a block is a fiber; fibers run one after the other, each up to its next barrier or warp operation.
// Supported: one-dimensional grids, the built-in functions below, and shared memory that a kernel's body gets as an
// argument. Not supported: memory ordering, masks of less than a warp, warps that are not full.
//
// Undefined behaviour on a GPU is an error here: a barrier or warp operation that some of its threads do not reach, or
// reach at another place in the source. Shared memory starts with a given pattern and fibers run in a given order. A
// result that depends on either shows that shared memory was read before it was written, or that a barrier is missing.
#pragma once

#if defined(__CUDACC__)
#error "for g++ only"
#endif

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#define __device__

namespace settrain::cuda_emulation {

struct Index {
  unsigned x;
};

struct Settings {
  unsigned char pattern;  // every byte of shared memory when a block starts
  bool backwards;         // the last thread runs first
};
inline constexpr Settings kSettings[] = {{0xFF, false}, {0x00, true}};

/// Where threads wait for each other.
enum class Meeting { kNone, kWarp, kBlock };

struct Fiber {
  ucontext_t context;
  bool done = false;
  Meeting waits_in = Meeting::kNone;
  std::source_location site;
  // The values that it brought to meetings of its warp and of its block. Two of each, since a thread may reach the next
  // meeting before all others have read the values of this one.
  uint64_t brought[2][2] = {};
  unsigned meetings[2] = {};
};

/// The values that the threads of a warp or of the block brought to a meeting, in the threads' order.
struct Brought {
  const Fiber* first;
  size_t size, kind, turn;
  uint64_t operator[](size_t i) const { return first[i].brought[kind][turn]; }
  uint64_t sum() const {
    uint64_t total = 0;
    for (size_t i = 0; i < size; ++i) total += (*this)[i];
    return total;
  }
};

class Block {
 public:
  Block(unsigned threads, bool backwards, std::function<void()> body);
  void run();
  /// Brings `value` to a meeting and waits for the others. Returns all values, valid until the thread's next meeting.
  Brought meet(Meeting meeting, uint64_t value, std::source_location site);
  static Block*& current() {
    static Block* block = nullptr;
    return block;
  }

 private:
  static constexpr size_t kStack = size_t{256} * 1024;

  static void enter() {
    Block& block = *current();
    block.body_();
    block.fibers_[block.running_].done = true;
    swapcontext(&block.fibers_[block.running_].context, &block.scheduler_);
  }
  void prepare(size_t thread);
  void resume(size_t thread);
  bool open(Meeting meeting, size_t first, size_t size);

  std::vector<Fiber> fibers_;
  std::unique_ptr<char[]> stacks_;
  bool backwards_;
  std::function<void()> body_;
  ucontext_t scheduler_;
  size_t running_ = 0;
};

}  // namespace settrain::cuda_emulation

inline settrain::cuda_emulation::Index threadIdx, blockIdx, blockDim, gridDim;

namespace settrain::cuda_emulation {

inline Block::Block(unsigned threads, bool backwards, std::function<void()> body)
    : fibers_(threads), stacks_(new char[threads * kStack]), backwards_(backwards), body_(std::move(body)) {
  if (threads % 32 != 0) throw std::logic_error("emulated blocks have full warps");
}

inline void Block::prepare(size_t thread) {
  ucontext_t& context = fibers_[thread].context;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks_.get() + thread * kStack;
  context.uc_stack.ss_size = kStack;
  makecontext(&context, &Block::enter, 0);
}

inline void Block::resume(size_t thread) {
  running_ = thread;
  threadIdx.x = static_cast<unsigned>(thread);
  swapcontext(&scheduler_, &fibers_[thread].context);
}

inline Brought Block::meet(Meeting meeting, uint64_t value, std::source_location site) {
  const size_t kind = meeting == Meeting::kBlock, self = running_;
  Fiber& fiber = fibers_[self];
  const unsigned turn = fiber.meetings[kind]++ % 2;
  fiber.brought[kind][turn] = value;
  fiber.waits_in = meeting;
  fiber.site = site;
  swapcontext(&fiber.context, &scheduler_);
  return {&fibers_[kind ? 0 : self / 32 * 32], kind ? fibers_.size() : 32, kind, turn};
}

/// Lets the threads of a meeting continue if all are there.
inline bool Block::open(Meeting meeting, size_t first, size_t size) {
  const auto begin = fibers_.begin() + static_cast<std::ptrdiff_t>(first),
             end = begin + static_cast<std::ptrdiff_t>(size);
  const auto is_there = [&](const Fiber& fiber) {
    return !fiber.done && fiber.waits_in == meeting && fiber.site.line() == begin->site.line() &&
           std::strcmp(fiber.site.file_name(), begin->site.file_name()) == 0;
  };
  if (!std::all_of(begin, end, is_there)) return false;
  std::for_each(begin, end, [](Fiber& fiber) { fiber.waits_in = Meeting::kNone; });
  return true;
}

inline void Block::run() {
  current() = this;
  for (size_t i = 0; i < fibers_.size(); ++i) prepare(i);
  for (;;) {
    for (size_t i = 0; i < fibers_.size(); ++i) {
      const size_t thread = backwards_ ? fibers_.size() - 1 - i : i;
      if (!fibers_[thread].done && fibers_[thread].waits_in == Meeting::kNone) resume(thread);
    }
    if (std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& fiber) { return fiber.done; })) return;
    bool opened = open(Meeting::kBlock, 0, fibers_.size());
    for (size_t warp = 0; warp < fibers_.size(); warp += 32) opened |= open(Meeting::kWarp, warp, 32);
    if (opened) continue;
    std::string message = "threads wait for others that do not come:";
    for (size_t i = 0; i < fibers_.size(); ++i) {
      const Fiber& fiber = fibers_[i];
      message += "\n  " + std::to_string(i) + " " +
                 (fiber.done ? "ended"
                             : std::string("at ") + fiber.site.file_name() + ":" + std::to_string(fiber.site.line()));
    }
    throw std::logic_error(message);
  }
}

/// Runs body(shared) in `blocks` blocks of `threads` threads. `shared`: the block's uninitialised memory.
template <class Shared, class Body>
void launch(unsigned blocks, unsigned threads, const Settings& settings, const Body& body) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    const std::unique_ptr<unsigned char[]> memory(new unsigned char[sizeof(Shared)]);
    std::fill_n(memory.get(), sizeof(Shared), settings.pattern);
    Shared& shared = *reinterpret_cast<Shared*>(memory.get());
    Block(threads, settings.backwards, [&] { body(shared); }).run();
  }
}

template <class T>
uint64_t to_word(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

template <class T>
T from_word(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

inline Brought meet_warp(unsigned mask, uint64_t value, std::source_location site) {
  if (mask != 0xFFFFFFFF) throw std::logic_error("emulated warp operations are of the whole warp");
  return Block::current()->meet(Meeting::kWarp, value, site);
}

}  // namespace settrain::cuda_emulation

// CUDA's own names.
#define SETTRAIN_SITE std::source_location site = std::source_location::current()

inline void __syncthreads(SETTRAIN_SITE) {
  using namespace settrain::cuda_emulation;
  Block::current()->meet(Meeting::kBlock, 0, site);
}

inline int __syncthreads_count(int condition, SETTRAIN_SITE) {
  using namespace settrain::cuda_emulation;
  return static_cast<int>(Block::current()->meet(Meeting::kBlock, condition != 0, site).sum());
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFF, SETTRAIN_SITE) {
  settrain::cuda_emulation::meet_warp(mask, 0, site);
}

inline unsigned __ballot_sync(unsigned mask, int condition, SETTRAIN_SITE) {
  unsigned lanes = 0;
  const settrain::cuda_emulation::Brought all = settrain::cuda_emulation::meet_warp(mask, condition != 0, site);
  for (unsigned i = 0; i < 32; ++i) lanes |= static_cast<unsigned>(all[i]) << i;
  return lanes;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, SETTRAIN_SITE) {
  using namespace settrain::cuda_emulation;
  return from_word<T>(meet_warp(mask, to_word(value), site)[lane & 31]);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, SETTRAIN_SITE) {
  using namespace settrain::cuda_emulation;
  return from_word<T>(meet_warp(mask, to_word(value), site)[(threadIdx.x & 31) ^ static_cast<unsigned>(lanes)]);
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SETTRAIN_SITE) {
  return static_cast<unsigned>(settrain::cuda_emulation::meet_warp(mask, value, site).sum());
}

inline unsigned __reduce_min_sync(unsigned mask, unsigned value, SETTRAIN_SITE) {
  const settrain::cuda_emulation::Brought all = settrain::cuda_emulation::meet_warp(mask, value, site);
  for (unsigned i = 0; i < 32; ++i) value = std::min(value, static_cast<unsigned>(all[i]));
  return value;
}

#undef SETTRAIN_SITE

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}

inline int atomicAdd(int* place, int value) {
  const int before = *place;
  *place += value;
  return before;
}
