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
  /// A request up to and with its empty line; less where the client or its time ended, where a line ends otherwise than
  /// with CR LF, and where it is longer than kLongestHead.
  std::string read_head();
  /// From now on reads `head`, and behind it at most `body_bytes` of what comes.
  void begin_reading(std::string head, int64_t body_bytes);
  /// And so many more.
  void allow(int64_t body_bytes) { body_bytes_left_ += body_bytes; }

  /// No further request is to be read: of this one, there may be unread bytes.
  void close_after_answer() { closes_ = true; }
  bool closes() const { return closes_; }

  bool timed_out() const { return timed_out_; }
  bool is_too_long() const { return too_long_; }
  /// Whether what was read last is the end of a chunked body (RFC 9112, 7.1).
  bool ends_with_empty_line() const { return std::string_view(last_.data(), last_.size()) == "\r\n\r\n"; }

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
  bool receive();
  void linger();

  int socket_;
  const HttpLimits& limits_;
  const std::atomic<bool>& stopping_;
  Clock::time_point deadline_{};
  bool timed_out_ = false, too_long_ = false, closes_ = false;
  bool saw_stop_ = false;  // in this request
  std::string head_{};     // to be read before what comes
  size_t head_read_ = 0;
  int64_t body_bytes_left_ = 0;
  std::array<char, 4> last_{};        // bytes of the body
  std::array<char, 16384> buffer_{};  // what was received and not yet read
  size_t begin_ = 0, end_ = 0;
};

}  // namespace settrain
