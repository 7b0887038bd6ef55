#include "src/serve/http/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLooksForStop = std::chrono::milliseconds(100);
constexpr auto kArrivesAtStop = std::chrono::seconds(5);  // what is on its way when the server stops
constexpr auto kLongestLinger = std::chrono::seconds(1);

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Connection::Connection(int socket, const HttpLimits& limits, const std::atomic<bool>& stopping)
    : socket_(socket), limits_(limits), stopping_(stopping) {}

Connection::~Connection() {
  if (closes_) linger();
  ::close(socket_);
}

// Closing a socket with unread bytes resets the connection, and the client may never see the answer.
void Connection::linger() {
  ::shutdown(socket_, SHUT_WR);
  const auto until = Clock::now() + kLongestLinger;
  while (Clock::now() < until && poll_for(POLLIN, until) &&
         ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) > 0) {
  }
}

bool Connection::poll_for(short events, Clock::time_point until) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waited{socket_, events, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (Clock::now() >= until) return false;
  }
}

bool Connection::wait_for_request() {
  const auto idle_end = after(limits_.idle_seconds);
  while (begin_ == end_ && !poll_for(POLLIN, std::min(idle_end, Clock::now() + kLooksForStop))) {
    if (stopping_ || Clock::now() >= idle_end) return false;
  }
  deadline_ = after(limits_.seconds);
  timed_out_ = too_long_ = saw_stop_ = false;
  return true;
}

// Whether there is something in the buffer, which was empty.
bool Connection::receive() {
  for (;;) {
    if (stopping_ && !saw_stop_) {
      saw_stop_ = true;
      deadline_ = std::min(deadline_, Clock::now() + kArrivesAtStop);
    }
    timed_out_ = Clock::now() >= deadline_;
    if (timed_out_) return false;
    if (poll_for(POLLIN, std::min(deadline_, Clock::now() + kLooksForStop))) break;
  }
  const ssize_t received = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
  begin_ = 0;
  end_ = received > 0 ? static_cast<size_t>(received) : 0;
  return received > 0;
}

std::string Connection::read_head() {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    if (begin_ == end_ && !receive()) return head;
    head += buffer_[begin_++];
    if (head.back() == '\n' && !head.ends_with("\r\n")) return head;
    too_long_ = std::ssize(head) > kLongestHead;
    if (too_long_) return head;
  }
  return head;
}

void Connection::begin_reading(std::string head, int64_t body_bytes) {
  head_ = std::move(head);
  head_read_ = 0;
  body_bytes_left_ = body_bytes;
  last_ = {};
}

bool Connection::is_readable() const {
  return head_read_ < head_.size() || begin_ < end_ || poll_for(POLLIN, Clock::now());
}

bool Connection::is_writable() const {
  return poll_for(POLLOUT, after(limits_.seconds));
}

ssize_t Connection::read(char* bytes, size_t size) {
  if (head_read_ < head_.size()) {
    const size_t taken = head_.copy(bytes, size, head_read_);
    head_read_ += taken;
    return static_cast<ssize_t>(taken);
  }
  if (timed_out_ || too_long_) return -1;
  if (body_bytes_left_ <= 0) {
    too_long_ = true;
    return -1;
  }
  if (begin_ == end_ && !receive()) return -1;
  const size_t taken = std::min({size, end_ - begin_, static_cast<size_t>(body_bytes_left_)});
  std::memcpy(bytes, buffer_.data() + begin_, taken);
  begin_ += taken;
  body_bytes_left_ -= static_cast<int64_t>(taken);
  const size_t noted = std::min(taken, last_.size());
  std::copy(last_.begin() + static_cast<std::ptrdiff_t>(noted), last_.end(), last_.begin());
  std::copy_n(bytes + taken - noted, noted, last_.end() - static_cast<std::ptrdiff_t>(noted));
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* bytes, size_t size) {
  const auto until = after(limits_.seconds);
  for (size_t sent = 0; sent < size;) {
    const ssize_t count = ::send(socket_, bytes + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if ((errno != EAGAIN && errno != EINTR) || !poll_for(POLLOUT, until)) {
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

// httplib makes headers of these, which nothing here reads.
void Connection::get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
void Connection::get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}

}  // namespace settrain
