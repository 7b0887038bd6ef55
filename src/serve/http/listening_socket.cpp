#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/serve/http/http_server.h"

namespace settrain {
namespace {

constexpr int kBacklog = 128;

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Returns -1 with errno where that fails.
int bound_socket(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));  // connections of an earlier server may linger
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0) return socket;
  const int why = errno;
  ::close(socket);
  errno = why;
  return -1;
}

}  // namespace

ListeningSocket::ListeningSocket(const std::string& host, int port) : address_(fmt::format("{}:{}", host, port)) {
  addrinfo wanted{}, *first = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first);
  if (status != 0) throw Error(fmt::format("cannot listen at {}: {}", address_, ::gai_strerror(status)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(first, ::freeaddrinfo);
  for (const addrinfo* address = first; address && socket_ < 0; address = address->ai_next)
    socket_ = bound_socket(*address);
  if (socket_ < 0) {
    const int why = errno;
    throw Error(fmt::format("cannot listen at {}: {}{}", address_, std::strerror(why),
                            why == EADDRINUSE ? "; end the program that listens there, or choose another port" : ""));
  }
  port_ = port_of(socket_);
}

ListeningSocket::~ListeningSocket() {
  close();
}

void ListeningSocket::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void ListeningSocket::listen() {
  if (::listen(socket_, kBacklog) != 0)
    throw Error(fmt::format("cannot listen at {}: {}", address_, std::strerror(errno)));
}

int ListeningSocket::accept(int milliseconds) {
  pollfd waited{socket_, POLLIN, 0};
  if (::poll(&waited, 1, milliseconds) <= 0) return -1;
  const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection >= 0) {
    const int yes = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return connection;
  }
  switch (errno) {
    case EBADF:
    case EINVAL:
    case ENOTSOCK:
    case EOPNOTSUPP:
    case EFAULT:
      throw Error(fmt::format("cannot listen at {} any more: {}", address_, std::strerror(errno)));
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      log::warning(fmt::format("[serve] a connection cannot be taken: {}", std::strerror(errno)));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return -1;
    default:
      return -1;  // an error of the connection, which is gone
  }
}

}  // namespace settrain
