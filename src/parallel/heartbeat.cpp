#include "src/parallel/heartbeat.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace settrain {
namespace {

constexpr std::chrono::milliseconds kBetweenBeats{1000};

}  // namespace

std::string beats_of(int64_t rank) {
  return fmt::format("beats/{}", rank);
}

std::string calls_of(int64_t rank) {
  return fmt::format("calls/{}", rank);
}

// The thread's too: it may be left behind.
struct Heartbeat::State {
  c10::intrusive_ptr<c10d::Store> store;
  int64_t rank;
  std::atomic<int64_t> calls = 0;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false, has_ended = false;

  State(c10::intrusive_ptr<c10d::Store> connection, int64_t number) : store(std::move(connection)), rank(number) {}

  void beat() {
    try {
      int64_t told = 0;
      for (std::unique_lock lock(mutex); !is_ending;) {
        lock.unlock();
        const int64_t now = calls;
        store->add(calls_of(rank), now - told);
        told = now;
        store->add(beats_of(rank), 1);
        lock.lock();
        changed.wait_for(lock, kBetweenBeats, [this] { return is_ending; });
      }
    } catch (const std::exception&) {  // the store is gone, which the next collective call will say
    }
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
  }
};

Heartbeat::Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank)
    : state_(std::make_shared<State>(std::move(store), rank)), thread_([state = state_] { state->beat(); }) {}

Heartbeat::~Heartbeat() {
  std::unique_lock lock(state_->mutex);
  state_->is_ending = true;
  state_->changed.notify_all();
  // A store that hangs holds the thread.
  const bool has_ended = state_->changed.wait_for(lock, kBetweenBeats, [this] { return state_->has_ended; });
  lock.unlock();
  has_ended ? thread_.join() : thread_.detach();
}

void Heartbeat::begin_call() {
  ++state_->calls;
}

}  // namespace settrain
