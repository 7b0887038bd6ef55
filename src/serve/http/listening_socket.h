// The address that a server listens at.
#pragma once

#include <string>

namespace settrain {

class ListeningSocket {
 public:
  /// Takes the address; `port` 0: any free one. Throws Error where it cannot be had. Clients are refused until
  /// listen().
  ListeningSocket(const std::string& host, int port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int port() const { return port_; }

  /// Begins to listen. Throws Error where another process was faster.
  void listen();
  /// From now on clients are refused again.
  void close();
  /// The next connection; -1 where none came for `milliseconds`, or it was lost again. Throws Error where none can come
  /// any more.
  int accept(int milliseconds);

 private:
  std::string address_;
  int socket_ = -1, port_ = 0;
};

}  // namespace settrain
