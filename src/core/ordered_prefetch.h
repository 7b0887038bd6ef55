// Items made ahead of time by worker threads, and handed out in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace settrain {

/// Makes the items first, first + 1, ..., end - 1 on `workers` threads, at most `ahead` of them before they are asked
/// for. `make(number)` is called once a number, on any of the threads, for several numbers at a time. next() belongs to
/// one thread.
template <class Item>
class OrderedPrefetch {
 public:
  OrderedPrefetch(int64_t first, int64_t end, int64_t workers, int64_t ahead, std::function<Item(int64_t)> make)
      : make_(std::move(make)), end_(end), to_make_(first), to_deliver_(first) {
    if (workers < 1 || ahead < 1) throw std::invalid_argument("OrderedPrefetch: workers and ahead must be at least 1");
    slots_.resize(static_cast<size_t>(ahead));
    const int64_t useful = std::min({workers, ahead, end - first});
    try {
      for (int64_t i = 0; i < useful; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {  // no more threads to be had: those that started must end before the members go
      stop();
      throw;
    }
  }

  /// Waits for the items that are being made; the others are never begun.
  ~OrderedPrefetch() { stop(); }

  OrderedPrefetch(const OrderedPrefetch&) = delete;
  OrderedPrefetch& operator=(const OrderedPrefetch&) = delete;

  /// The next item; nothing after the last. Throws what make() threw for that item, after which the next call goes on
  /// with the item behind it.
  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    if (to_deliver_ >= end_) return std::nullopt;
    Slot& slot = slot_of(to_deliver_);
    made_.wait(lock, [&] { return slot.item.has_value() || slot.error; });
    Slot taken = std::exchange(slot, Slot{});
    ++to_deliver_;
    lock.unlock();
    room_.notify_one();
    if (taken.error) std::rethrow_exception(taken.error);
    return std::move(taken.item);
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr error;
  };

  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return stopped_ || to_make_ >= end_ || has_room(); });
      if (stopped_ || to_make_ >= end_) return;
      const int64_t number = to_make_++;
      lock.unlock();
      Slot made;
      try {
        made.item.emplace(make_(number));
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slot_of(number) = std::move(made);
      made_.notify_one();
    }
  }

  bool has_room() const { return to_make_ < to_deliver_ + static_cast<int64_t>(slots_.size()); }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  const std::function<Item(int64_t)> make_;
  const int64_t end_;
  std::mutex mutex_;
  std::condition_variable made_;  // an item was made
  std::condition_variable room_;  // there is room for one more, or it is time to stop
  std::vector<Slot> slots_;       // item n lies in slot n modulo their number until it is taken
  int64_t to_make_;               // the number that the next free worker begins
  int64_t to_deliver_;            // the number that next() waits for
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace settrain
