// Which processes of a training are there, and why one ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "src/parallel/heartbeat.h"
#include "src/parallel/launch.h"
#include "src/parallel/store_client.h"

namespace settrain {

/// What the processes tell each other through the store, besides their collective calls. The first one to know why the
/// training ends writes it there, as the verdict, which all others then give as their reason.
class Membership {
 public:
  /// Comes to the store. `timeout`: of reaching it, and of waiting for the others. Throws ParallelError where it cannot
  /// be reached, or where another process has come as this one.
  Membership(const Launch& launch, std::chrono::milliseconds timeout);

  /// Waits until every process is there. Throws ParallelError with the verdict where one ended before, or that names
  /// those that have not come.
  void meet();

  /// A collective call begins.
  void begin_call() { heartbeat_.begin_call(); }

  /// Why a collective call failed: the verdict, or who is to blame, which becomes it. `error`: what the call says
  /// itself; `is_overdue`: that the timeout has passed over it.
  std::string reason_for(const std::string& error, bool is_overdue);

  /// This process ends by an error of its own.
  void report_failure(const std::string& message);

  /// This process ends, and waits for nobody any more. The one that keeps the store stays a little until the others
  /// have read the verdict.
  void leave();

  /// For what else the processes have to agree on.
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

 private:
  struct Counts {
    std::vector<int64_t> beats, calls;  // of every process
  };

  // Throws ParallelError where the store is silent or gone.
  void ask(const char* what, const std::function<void()>& questions);
  Counts counts();
  // The verdict that stands, which is this one where there was none. `gone`: who will not read it.
  std::string judge(const std::string& message, const std::vector<int64_t>& gone);
  std::string verdict();
  // Empty where nobody is.
  std::string accuse(const Counts& before, const Counts& after, bool is_overdue, std::vector<int64_t>& gone);

  int64_t rank_, world_size_;
  bool keeps_store_;
  std::string keeper_;  // "process 0 of 2, which keeps the store,"
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  StoreClient client_;
  Heartbeat heartbeat_;
};

}  // namespace settrain
