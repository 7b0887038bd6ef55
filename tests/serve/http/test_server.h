// A server in the test's process, and clients that send it bytes.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/serve/http/http_server.h"
#include "tests/support/catch2.h"

namespace settrain::test {

inline constexpr const char* kHead = "POST /predict HTTP/1.1\r\nHost: a\r\n";

/// Answers how many images there are, and how long the first one is.
inline std::string count_images(std::span<const Upload> images, std::string_view query) {
  if (images[0].bytes == "refuse") throw HttpError(400, "no image");
  if (images[0].bytes == "fail") throw std::runtime_error("a secret");
  if (images[0].bytes == "no memory") throw std::bad_alloc();
  return std::to_string(images.size()) + " " + std::to_string(images[0].bytes.size()) + std::string(query) + "\n";
}

inline HttpLimits small_limits(double seconds = 60) {
  return {.bytes = 1000, .images = 3, .connections = 4, .seconds = seconds, .idle_seconds = seconds};
}

struct TestServer {
  ServiceMetrics metrics{};
  HttpServer server;

  explicit TestServer(const HttpLimits& limits = small_limits(), const std::vector<std::string>& origins = {},
                      decltype(HttpAnswers::predict) predict = count_images)
      : server({.page_html = "<p>",
                .page_css = "p {}",
                .page_js = "1;",
                .model = "{\"names\":[]}\n",
                .predict = std::move(predict),
                .origins = origins},
               limits, metrics) {}
};

inline std::string read_all(int socket) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;)
    text.append(buffer.data(), static_cast<size_t>(n));
  return text;
}

/// -1 where nobody listens.
inline int connect_to(int port) {
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return client;
  ::close(client);
  return -1;
}

/// All that comes back for `sent`, which the client sends at once. It then closes its side, or says nothing any more.
inline std::string answer_to(TestServer& test, const std::string& sent, bool closes = true) {
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  REQUIRE(::send(sockets[1], sent.data(), sent.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == std::ssize(sent));
  if (closes) ::shutdown(sockets[1], SHUT_WR);
  std::thread thread([&] { test.server.serve_connection(sockets[0]); });
  const std::string answer = read_all(sockets[1]);
  ::close(sockets[1]);
  thread.join();
  return answer;
}

inline std::string post(const std::string& body, const std::string& headers = "") {
  return kHead + headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline int answers_in(const std::string& text) {
  int count = 0;
  for (size_t at = 0; (at = text.find("HTTP/1.1 ", at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace settrain::test
