// Slow clients, large bodies, many connections, and the end of a server.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/serve/http/test_server.h"

using namespace settrain;
using namespace settrain::test;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

TEST_CASE("a request that does not arrive is answered with 408, wherever it stops") {
  TestServer test(small_limits(0.3));
  for (const std::string& sent : {std::string("GET /hea"), std::string("GET /healthz HTTP/1.1\r\nHost: "),
                                  std::string(kHead) + "Content-Length: 100\r\n\r\nabc",
                                  std::string(kHead) + "Transfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    CHECK_THAT(answer_to(test, sent, /*closes=*/false),
               StartsWith("HTTP/1.1 408") && Contains("did not arrive in time"));
  }
  CHECK(answer_to(test, "", /*closes=*/false).empty());  // idle: closed without a word
}

TEST_CASE("a byte now and then does not keep a connection beyond its time") {
  TestServer test(small_limits(0.3));
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  auto done = std::async(std::launch::async, [&] { test.server.serve_connection(sockets[0]); });
  const auto start = std::chrono::steady_clock::now();
  while (done.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    ::send(sockets[1], "G", 1, MSG_NOSIGNAL);
    REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // of 0.3 s, and the linger
  }
  CHECK_THAT(read_all(sockets[1]), StartsWith("HTTP/1.1 408"));
  ::close(sockets[1]);
}

TEST_CASE("headers without an end are refused") {
  TestServer test;
  std::string many = "GET /healthz HTTP/1.1\r\nHost: a\r\n";
  while (many.size() < 100'000) many += "X-Header: " + std::string(1000, 'x') + "\r\n";
  CHECK_THAT(answer_to(test, many), StartsWith("HTTP/1.1 431"));
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'x')),
             StartsWith("HTTP/1.1 431"));
}

TEST_CASE("bodies that together take too much memory are refused") {
  HttpLimits limits = small_limits();
  limits.connections = 32;
  const int64_t most = limits.bytes_of_all_bodies() / limits.bytes;
  std::latch all_arrived(most), may_answer(1);
  const std::string largest(static_cast<size_t>(limits.bytes), 'x'), sent = post(largest);
  TestServer test(limits, {}, [&](std::span<const Upload> images, std::string_view query) {
    if (images[0].bytes == largest) {
      all_arrived.count_down();
      may_answer.wait();
    }
    return count_images(images, query);
  });
  std::vector<int> held;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < most; ++i) {
    int sockets[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    REQUIRE(::send(sockets[1], sent.data(), sent.size(), MSG_NOSIGNAL) == std::ssize(sent));
    ::shutdown(sockets[1], SHUT_WR);
    held.push_back(sockets[1]);
    threads.emplace_back([&test, socket = sockets[0]] { test.server.serve_connection(socket); });
  }
  const auto start = std::chrono::steady_clock::now();
  while (!all_arrived.try_wait() && std::chrono::steady_clock::now() - start < std::chrono::seconds(60))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(all_arrived.try_wait());
  CHECK_THAT(answer_to(test, post("x")), StartsWith("HTTP/1.1 503") && Contains("too many images are being sent"));
  may_answer.count_down();
  for (const int socket : held) {
    CHECK_THAT(read_all(socket), StartsWith("HTTP/1.1 200"));
    ::close(socket);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_THAT(answer_to(test, post("abcdefghi")), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("connections beyond the limit are told so at once") {
  TestServer test;
  std::vector<int> held;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < small_limits().connections; ++i) {
    int sockets[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    held.push_back(sockets[1]);
    threads.emplace_back([&test, socket = sockets[0]] { test.server.serve_connection(socket); });
  }
  while (test.metrics.text().find("settrain_connections 4\n") == std::string::npos) std::this_thread::yield();
  CHECK_THAT(answer_to(test, "", /*closes=*/false), StartsWith("HTTP/1.1 503") && Contains("too many connections"));
  for (const int socket : held) ::close(socket);
  for (std::thread& thread : threads) thread.join();
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("every answer after the signal says that its connection closes") {
  std::atomic<bool> stop{false};
  HttpLimits limits = small_limits();
  limits.connections = 16;
  TestServer test(limits);
  ListeningSocket socket("127.0.0.1", 0);
  socket.listen();
  std::thread thread([&] { test.server.run(socket, [&] { return stop.load(); }); });
  const std::string get = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", whole = post("abc"), bad = post("refuse");
  const std::string chunked = kHead + std::string("Transfer-Encoding: chunked\r\n\r\n");
  struct Request {
    std::string before, after, status;  // before and after the signal
  };
  const std::vector<Request> requests{
      {whole.substr(0, whole.size() - 1), "c", "200"},      {whole.substr(0, whole.size() - 1), "c" + get + get, "200"},
      {whole.substr(0, 20), whole.substr(20), "200"},       {chunked + "3\r\nabc", "\r\n0\r\nX: y\r\n\r\n", "200"},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n", "\r\n", "204"}, {bad.substr(0, bad.size() - 1), "e", "400"},
      {"GET /healthz HTTP/1.1\r\n", "\r\n", "400"},         {"GET /not", "hing HTTP/1.1\r\nHost: a\r\n\r\n", "404"}};
  const int kept = connect_to(socket.port());  // it is answered, told to keep the connection, and asks again
  REQUIRE(::send(kept, get.data(), get.size(), MSG_NOSIGNAL) == std::ssize(get));
  std::array<char, 4096> first{};
  REQUIRE(::recv(kept, first.data(), first.size(), 0) > 0);
  CHECK(std::string(first.data()).find("Connection: close") == std::string::npos);
  std::vector<int> clients;
  for (const Request& request : requests) {
    clients.push_back(connect_to(socket.port()));
    REQUIRE(::send(clients.back(), request.before.data(), request.before.size(), MSG_NOSIGNAL) ==
            std::ssize(request.before));
  }
  const std::string connected = fmt::format("settrain_connections {}\n", clients.size() + 1);
  while (test.metrics.text().find(connected) == std::string::npos) std::this_thread::yield();
  stop = true;
  REQUIRE(::send(kept, get.data(), get.size(), MSG_NOSIGNAL) == std::ssize(get));
  for (size_t i = 0; i < clients.size(); ++i) {
    const std::string& rest = requests[i].after;
    REQUIRE(::send(clients[i], rest.data(), rest.size(), MSG_NOSIGNAL) == std::ssize(rest));
  }
  CHECK_THAT(read_all(kept), StartsWith("HTTP/1.1 200") && Contains("\r\nConnection: close\r\n"));
  for (size_t i = 0; i < clients.size(); ++i) {
    const std::string answer = read_all(clients[i]);
    CAPTURE(requests[i].before, requests[i].after);
    CHECK(answers_in(answer) == 1);
    CHECK_THAT(answer, StartsWith("HTTP/1.1 " + requests[i].status) && Contains("\r\nConnection: close\r\n"));
    ::close(clients[i]);
  }
  ::close(kept);
  thread.join();
}

TEST_CASE("a server listens, answers what has begun, and stops") {
  TestServer test;
  ListeningSocket socket("127.0.0.1", 0);
  REQUIRE(socket.port() > 0);
  socket.listen();
  CHECK_THROWS_AS(ListeningSocket("127.0.0.1", socket.port()), Error);
  CHECK_THROWS_AS(ListeningSocket("203.0.113.1", 0), Error);
  CHECK_THROWS_AS(ListeningSocket("no address", 0), Error);
  std::atomic<bool> stop{false};
  std::thread thread([&] { test.server.run(socket, [&] { return stop.load(); }); });

  const int client = connect_to(socket.port());
  REQUIRE(client >= 0);
  const std::string sent = post("abc");
  REQUIRE(::send(client, sent.data(), sent.size() - 1, MSG_NOSIGNAL) == std::ssize(sent) - 1);
  while (test.metrics.text().find("settrain_connections 1\n") == std::string::npos) std::this_thread::yield();
  stop = true;
  for (int late = 0; late >= 0;) {
    late = connect_to(socket.port());
    if (late >= 0) ::close(late);
  }
  REQUIRE(::send(client, "c", 1, MSG_NOSIGNAL) == 1);
  CHECK_THAT(read_all(client), StartsWith("HTTP/1.1 200") && EndsWith("1 3\n"));
  thread.join();
  ::close(client);
}

TEST_CASE("a client that drips at the end does not hold it up") {
  TestServer test;
  ListeningSocket socket("127.0.0.1", 0);
  socket.listen();
  std::atomic<bool> stop{false};
  std::thread thread([&] { test.server.run(socket, [&] { return stop.load(); }); });
  const int client = connect_to(socket.port());
  const std::string start = "POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
  REQUIRE(::send(client, start.data(), start.size(), MSG_NOSIGNAL) == std::ssize(start));
  while (test.metrics.text().find("settrain_connections 1\n") == std::string::npos) std::this_thread::yield();
  stop = true;
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> has_ended{false};
  std::thread drip([&] {
    while (!has_ended && ::send(client, "x", 1, MSG_NOSIGNAL) == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  thread.join();
  has_ended = true;
  drip.join();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));  // and not the 60 s of its limit
  CHECK_THAT(read_all(client), StartsWith("HTTP/1.1 408"));
  ::close(client);
}
