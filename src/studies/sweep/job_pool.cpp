#include "src/studies/sweep/job_pool.h"

#include <exception>
#include <utility>

namespace settrain {
namespace {

struct Stopped {};

}  // namespace

JobPool::JobPool(std::deque<int64_t> items, int64_t places, int keep_open,
                 std::function<std::vector<std::string>(int64_t, int64_t)> command)
    : command_(std::move(command)),
      keep_open_(keep_open),
      items_(std::move(items)),
      places_(static_cast<size_t>(places)),
      at_work_(places) {
  std::unique_lock lock(mutex_);  // no program is begun before all threads are there
  try {
    for (int64_t place = 0; place < places; ++place) threads_.emplace_back([this, place] { work(place); });
  } catch (...) {  // those that started must end before the members go
    stop();
    lock.unlock();
    join();
    throw;
  }
}

JobPool::~JobPool() {
  stop();
  join();
}

void JobPool::join() {
  for (std::thread& thread : threads_) thread.join();
}

std::vector<EndedJob> JobPool::take_ended() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

std::vector<JobPool::Place> JobPool::places() {
  const std::lock_guard lock(mutex_);
  return places_;
}

bool JobPool::is_done() {
  const std::lock_guard lock(mutex_);
  return at_work_ == 0 && ended_.empty();
}

void JobPool::work(int64_t place) {
  const auto end_if_stopped = [this] {
    if (stopped_) throw Stopped();
  };
  Place& mine = places_[static_cast<size_t>(place)];
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      mine.item = -1;
      if (stopped_ || items_.empty()) {
        --at_work_;
        return;
      }
      mine = {items_.front(), std::chrono::steady_clock::now()};
      items_.pop_front();
    }
    EndedJob job{.item = mine.item};
    try {
      // The system ends the program where this thread ends, for whatever reason.
      std::vector<std::string> command{"setpriv", "--pdeathsig", "TERM", "--"};
      for (std::string& word : command_(mine.item, place)) command.push_back(std::move(word));
      job.end = run_child({.command = command,
                           .package = "util-linux",
                           .meanwhile = end_if_stopped,
                           .keep_open = keep_open_,
                           .folder = {}});
    } catch (const Stopped&) {
      continue;
    } catch (const std::exception& problem) {
      job.problem = problem.what();
    }
    const std::lock_guard lock(mutex_);
    job.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - mine.since).count();
    ended_.push_back(std::move(job));
  }
}

}  // namespace settrain
