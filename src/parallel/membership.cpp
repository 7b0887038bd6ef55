#include "src/parallel/membership.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>
#include <utility>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenQuestions{100}, kBetweenBeats{1000};
constexpr const char *kVerdict = "verdict", *kReady = "ready", *kAllReady = "all_ready";

// Keys of the store for a process. "ends": the process ends, though it may still ask why. "left": it needs the store no
// more. "beats", "calls": numbers that it counts up, of its beats and of the collective calls that it has begun.
std::string key_of(const char* what, int64_t rank) {
  return fmt::format("{}/{}", what, rank);
}

// Opens the store, where this process keeps it, or reaches it. Throws ParallelError that says where it should be.
c10::intrusive_ptr<c10d::Store> connect_to_store(const Launch& launch, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.isServer = launch.rank == 0 && !launch.launcher_keeps_store;
  options.timeout = timeout;
  options.waitWorkers = false;
  try {
    return c10::make_intrusive<c10d::PrefixStore>("settrain/" + launch.attempt,
                                                  c10::make_intrusive<c10d::TCPStore>(launch.host, options));
  } catch (const std::exception& error) {
    throw ParallelError(fmt::format("process {} of {} cannot {} the store at {}:{}: {}", launch.rank, launch.world_size,
                                    options.isServer ? "open" : "reach", launch.host, launch.port, cause(error)));
  }
}

// The process that keeps the store does not answer, as where it hangs.
class StoreSilent : public std::runtime_error {
 public:
  StoreSilent() : std::runtime_error("the store does not answer") {}
};

}  // namespace

std::string cause(const std::exception& error) {
  std::string line = first_line(error.what());
  while (line.starts_with('[')) {
    const size_t end = line.find("] ");
    if (end == std::string::npos) break;
    line.erase(0, end + 2);
  }
  return line;
}

// The store, asked so that nobody waits for ever: all calls throw StoreSilent where no answer comes within the
// patience, and c10d's own errors where the store is gone.
class Membership::StoreClient {
 public:
  StoreClient(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds patience)
      : store_(std::move(store)), patience_(patience) {}

  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  // Whether all of the keys are there.
  bool has(const std::vector<std::string>& keys) {
    return ask([keys](c10d::Store& store) { return store.check(keys); });
  }

  // The value of a key that is there.
  std::string get(const std::string& key) {
    return ask([key](c10d::Store& store) { return store.get_to_str(key); });
  }

  void set(const std::string& key, const std::string& value) {
    ask([key, value](c10d::Store& store) { store.set(key, value); });
  }

  // Sets a key that nobody has set yet; returns its value now.
  std::string set_once(const std::string& key, const std::string& value) {
    return ask([key, value](c10d::Store& store) { return store.compareSet(key, std::string(), value); });
  }

  // Adds to a number, which begins with 0; returns the sum.
  int64_t add(const std::string& key, int64_t number) {
    return ask([key, number](c10d::Store& store) { return store.add(key, number); });
  }

 private:
  // c10d waits for answers without a limit: a thread of its own does, which is left behind where none comes.
  template <class Call, class Answer = std::invoke_result_t<Call, c10d::Store&>>
  Answer ask(Call call) {
    if (is_silent_) throw StoreSilent();
    auto task = std::make_shared<std::packaged_task<Answer()>>(
        [store = store_, call = std::move(call)] { return call(*store); });
    std::future<Answer> answer = task->get_future();
    std::thread thread([task] { (*task)(); });
    if (answer.wait_for(patience_) != std::future_status::ready) {
      thread.detach();
      is_silent_ = true;
      throw StoreSilent();
    }
    thread.join();
    return answer.get();
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds patience_;
  bool is_silent_ = false;
};

// A thread that counts beats and begun calls up in the store every second, for as long as the object lives. A process
// that was killed or is stopped beats no more; one whose own thread hangs beats on, but begins no more calls.
class Membership::Heartbeat {
 public:
  // `store`: a connection that nobody else uses, since one serves a request at a time.
  Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank)
      : state_(std::make_shared<State>(std::move(store), rank)), thread_([state = state_] { state->beat(); }) {}
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() {
    std::unique_lock lock(state_->mutex);
    state_->is_ending = true;
    state_->changed.notify_all();
    // A store that hangs holds the thread.
    const bool has_ended = state_->changed.wait_for(lock, kBetweenBeats, [this] { return state_->has_ended; });
    lock.unlock();
    has_ended ? thread_.join() : thread_.detach();
  }

  void begin_call() { ++state_->calls; }

 private:
  // The thread has a share in it, since it may be left behind.
  struct State {
    c10::intrusive_ptr<c10d::Store> store;
    int64_t rank;
    std::atomic<int64_t> calls = 0;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_ending = false, has_ended = false;

    State(c10::intrusive_ptr<c10d::Store> connection, int64_t number) : store(std::move(connection)), rank(number) {}

    void beat() {
      try {
        int64_t reported = 0;
        for (std::unique_lock lock(mutex); !is_ending;) {
          lock.unlock();
          const int64_t now = calls;
          store->add(key_of("calls", rank), now - reported);
          reported = now;
          store->add(key_of("beats", rank), 1);
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

  std::shared_ptr<State> state_;
  std::thread thread_;
};

Membership::Membership(const Launch& launch, std::chrono::milliseconds timeout)
    : rank_(launch.rank),
      world_size_(launch.world_size),
      keeps_store_(launch.rank == 0 && !launch.launcher_keeps_store),
      keeper_(launch.launcher_keeps_store ? "the launcher, which keeps the store,"
                                          : fmt::format("process 0 of {}, which keeps the store,", launch.world_size)),
      timeout_(timeout),
      store_(connect_to_store(launch, timeout)),
      client_(std::make_unique<StoreClient>(store_, timeout)),
      heartbeat_(std::make_unique<Heartbeat>(store_->clone(), launch.rank)) {
  ask("coming to the others", [&] {
    if (client_->add(key_of("here", rank_), 1) == 1) return;
    throw ParallelError(
        fmt::format("process {} of {} is at the store at {}:{} already: another training has this address; give each "
                    "its own MASTER_PORT",
                    rank_, world_size_, launch.host, launch.port));
  });
}

Membership::~Membership() = default;

void Membership::begin_call() {
  heartbeat_->begin_call();
}

void Membership::ask(const char* what, const std::function<void()>& questions) {
  try {
    questions();
  } catch (const ParallelError&) {
    throw;
  } catch (const StoreSilent&) {
    throw ParallelError(fmt::format("{} does not answer ({})", keeper_, what));
  } catch (const std::exception& error) {
    throw ParallelError(fmt::format("{} has ended ({}: {})", keeper_, what, cause(error)));
  }
}

void Membership::meet() {
  const auto deadline = Clock::now() + timeout_;
  ask("waiting for the others", [&] {
    client_->set(key_of(kReady, rank_), "1");
    if (client_->add(kReady, 1) == world_size_) client_->set(kAllReady, "1");
    while (!client_->has({kAllReady})) {
      if (client_->has({kVerdict})) throw ParallelError(verdict());
      if (Clock::now() > deadline) {
        std::vector<int64_t> missing;
        for (int64_t other = 0; other < world_size_; ++other) {
          if (!client_->has({key_of(kReady, other)})) missing.push_back(other);
        }
        throw ParallelError(propose_verdict(fmt::format("process {} of {} has not come within {} s (parallel.timeout)",
                                                        fmt::join(missing, ", "), world_size_, timeout_.count() / 1000),
                                            missing));
      }
      std::this_thread::sleep_for(kBetweenQuestions);
    }
    client_->set_patience(kPatience);
  });
}

std::string Membership::reason_for(const std::string& error, bool is_overdue) {
  try {
    client_->set(key_of("ends", rank_), "1");  // whoever looks for the failed process need not look here
    const Counts before = counts();
    for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
      if (client_->has({kVerdict})) return verdict();
      std::this_thread::sleep_for(kBetweenQuestions);
    }
    std::vector<int64_t> gone;
    const std::string blame = find_failed_ranks(before, counts(), is_overdue, gone);
    if (!blame.empty()) return propose_verdict(fmt::format("{} ({})", blame, error), gone);
    return propose_verdict(error, gone);
  } catch (const StoreSilent&) {
    return fmt::format("{} does not answer ({})", keeper_, error);
  } catch (const std::exception&) {
    return fmt::format("{} has ended ({})", keeper_, error);
  }
}

std::string Membership::find_failed_ranks(const Counts& before, const Counts& after, bool is_overdue,
                                          std::vector<int64_t>& gone) {
  const int64_t most_calls = std::ranges::max(after.calls);
  std::vector<int64_t> late;
  for (int64_t other = 0; other < world_size_; ++other) {
    const auto i = static_cast<size_t>(other);
    const bool beats_on = after.beats[i] != before.beats[i], is_behind = after.calls[i] < most_calls;
    if ((beats_on && !is_behind) || client_->has({key_of("ends", other)})) continue;
    (beats_on ? late : gone).push_back(other);
  }
  if (!gone.empty()) return fmt::format("process {} of {} was killed or hangs", fmt::join(gone, ", "), world_size_);
  if (late.empty() || !is_overdue) return "";
  gone = late;
  return fmt::format("process {} of {} hangs, or takes longer than parallel.timeout over what the others have done",
                     fmt::join(late, ", "), world_size_);
}

Membership::Counts Membership::counts() {
  Counts counts;
  for (int64_t other = 0; other < world_size_; ++other) {
    counts.beats.push_back(client_->add(key_of("beats", other), 0));
    counts.calls.push_back(client_->add(key_of("calls", other), 0));
  }
  return counts;
}

std::string Membership::propose_verdict(const std::string& message, const std::vector<int64_t>& gone) {
  const nlohmann::json mine{{"message", message}, {"gone", gone}};
  const std::string text = mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(client_->set_once(kVerdict, text)).at("message").get<std::string>();
}

std::string Membership::verdict() {
  return nlohmann::json::parse(client_->get(kVerdict)).at("message").get<std::string>();
}

void Membership::report_failure(const std::string& message) {
  propose_verdict(fmt::format("process {}: {}", rank_, first_line(message)), {});
}

void Membership::leave() {
  client_->set_patience(kPatience);
  client_->set(key_of("ends", rank_), "1");
  client_->set(key_of("left", rank_), "1");
  if (!keeps_store_) return;
  std::vector<int64_t> gone;
  if (client_->has({kVerdict})) nlohmann::json::parse(client_->get(kVerdict)).at("gone").get_to(gone);
  std::vector<std::string> readers;
  for (int64_t other = 0; other < world_size_; ++other) {
    if (std::ranges::count(gone, other) == 0) readers.push_back(key_of("left", other));
  }
  for (const auto end = Clock::now() + 2 * kPatience; !client_->has(readers) && Clock::now() < end;) {
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

}  // namespace settrain
