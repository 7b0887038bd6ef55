// The store that the processes of a training share, asked so that nobody waits for ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "src/parallel/launch.h"

namespace settrain {

/// How long the store, or a process that should be there, may say nothing. Until all have come it may be longer: c10d
/// looks up the name of everyone who connects, and a slow DNS keeps the store that long from answering.
constexpr std::chrono::milliseconds kPatience{5000};

/// Who keeps the store does not answer, as where it hangs.
class StoreSilent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Opens the store, where this process keeps it, or reaches it. Throws ParallelError that says where it should be.
c10::intrusive_ptr<c10d::Store> connect_to_store(const Launch& launch, std::chrono::milliseconds timeout);

/// c10d's and gloo's own messages begin with places in their sources, and end with stacks: what lies between.
std::string cause(const std::exception& error);

/// All calls throw StoreSilent where no answer comes within the patience, and what c10d throws where the store is gone.
class StoreClient {
 public:
  StoreClient(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds patience);

  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  /// Whether all of the keys are there.
  bool has(const std::vector<std::string>& keys);
  /// The value of a key that is there.
  std::string get(const std::string& key);
  void set(const std::string& key, const std::string& value);
  /// Sets what nobody has set yet; returns what it is now.
  std::string set_once(const std::string& key, const std::string& value);
  /// Adds to a number, which begins with 0; returns the sum.
  int64_t add(const std::string& key, int64_t number);

 private:
  template <class Call>
  auto ask(Call call);

  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds patience_;
  bool is_silent_ = false;
};

}  // namespace settrain
