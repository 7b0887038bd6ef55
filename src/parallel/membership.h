// Which processes of a training are there, and why one ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "src/parallel/launch.h"

namespace settrain {

/// How long the store, or a process that should be there, may say nothing. Until all have come it may be longer: c10d
/// looks up the name of everyone who connects, and a slow DNS keeps the store that long from answering.
constexpr std::chrono::milliseconds kPatience{5000};

/// The line of a message of c10d or gloo that tells the cause, without the places in their sources in front and the
/// stack behind.
std::string cause(const std::exception& error);

/// Messages that the processes leave for each other in the store, besides their collective calls. The first one to know
/// why the training ends writes it there, as the verdict, which all others then give as their reason.
class Membership {
 public:
  /// Connects to the store. `timeout`: of reaching it, and of waiting for the others. Throws ParallelError where it
  /// cannot be reached, or where another process has come as this one.
  Membership(const Launch& launch, std::chrono::milliseconds timeout);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership();

  /// Waits until every process is there. Throws ParallelError with the verdict where one ended before, or that names
  /// those that have not come.
  void meet();

  /// A collective call begins. Any thread may say so.
  void begin_call();

  /// Why a collective call failed: the verdict, or who is to blame, which becomes it. `error`: the call's own message;
  /// `is_overdue`: that the timeout has passed over it.
  std::string reason_for(const std::string& error, bool is_overdue);

  /// This process ends by an error of its own.
  void report_failure(const std::string& message);

  /// This process ends, and waits for nobody any more. The one that keeps the store stays a little until the others
  /// have read the verdict.
  void leave();

  /// For what else the processes have to agree on.
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

 private:
  class StoreClient;
  class Heartbeat;
  struct Counts {
    std::vector<int64_t> beats, calls;  // of every process
  };

  // Throws ParallelError where the store is silent or gone.
  void ask(const char* what, const std::function<void()>& questions);
  Counts counts();
  // Writes the verdict where there is none yet, and returns the one that stands. `gone`: processes that will not read
  // it.
  std::string propose_verdict(const std::string& message, const std::vector<int64_t>& gone);
  std::string verdict();
  // Says which processes are to blame, by the counts of some time apart, and adds their ranks to `gone`. Empty where
  // none is.
  std::string find_failed_ranks(const Counts& before, const Counts& after, bool is_overdue, std::vector<int64_t>& gone);

  int64_t rank_, world_size_;
  bool keeps_store_;
  std::string keeper_;  // "process 0 of 2, which keeps the store,"
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<StoreClient> client_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace settrain
