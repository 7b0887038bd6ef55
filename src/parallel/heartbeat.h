// Signs of life of a process, for those that wait for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace settrain {

/// The numbers in the store that a process counts up: its beats, and the collective calls that it has begun.
std::string beats_of(int64_t rank);
std::string calls_of(int64_t rank);

/// A thread that counts them up every second, for as long as the object lives. A process that was killed or is stopped
/// beats no more; one whose own thread hangs beats on, but begins no more calls.
class Heartbeat {
 public:
  /// `store`: a connection that nobody else uses, since one serves a request at a time.
  Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat();

  /// A collective call begins. Any thread may say so.
  void begin_call();

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace settrain
