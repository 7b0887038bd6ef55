// One client's connection, as httplib reads and writes it, with limits on time and bytes.
#pragma once

#include <httplib.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "src/serve/http/limits.h"

namespace settrain {

/// httplib has a time limit for each read only, and none for the bytes of headers: a client that sends a byte every few
/// seconds, or a header without an end, would keep a thread and memory for as long as it likes. Here a whole request
/// has a deadline and a budget of bytes; once one of them is passed, the connection reads as if it had ended.
class Connection : public httplib::Stream {
 public:
  /// Closes `socket` in the end. `stopping`: ends the wait for another request.
  Connection(int socket, const HttpLimits& limits, const std::atomic<bool>& stopping);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Waits for a request's first byte, from where its time runs. False where none comes any more.
  bool wait_for_request();
  /// The headers have come: `bytes` more may.
  void expect_body(int64_t bytes) { bytes_left_ = bytes; }
  /// No further request is to be read: of this one, there may be unread bytes.
  void close_after_answer() { closes_ = true; }
  bool closes() const { return closes_; }

  bool timed_out() const { return timed_out_; }
  bool is_too_long() const { return too_long_; }
  /// Whether anything was written since wait_for_request().
  bool has_answered() const { return answered_; }

  std::string content_type{};  // of the request in hand

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool poll_for(short events, Clock::time_point until) const;
  Clock::time_point after(double seconds) const;
  void linger();

  int socket_;
  const HttpLimits& limits_;
  const std::atomic<bool>& stopping_;
  Clock::time_point deadline_{};
  int64_t bytes_left_ = 0;
  bool timed_out_ = false, too_long_ = false, answered_ = false, closes_ = false;
  std::array<char, 16384> buffer_{};  // what was received and not yet read
  size_t begin_ = 0, end_ = 0;
};

}  // namespace settrain
