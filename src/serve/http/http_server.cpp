#include "src/serve/http/http_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "src/core/log.h"
#include "src/serve/http/connection.h"
#include "src/serve/http/router.h"

namespace settrain {
namespace {

constexpr int kLooksForStopMs = 50;
// Connections beyond the limit that are told so at a time; of still more, the socket is closed without a word.
constexpr int64_t kMostRefusals = 16;

struct Worker {
  std::atomic<bool> is_done{false};
  std::thread thread{};
};

void join_those_done(std::list<Worker>& workers) {
  workers.remove_if([](Worker& worker) {
    if (!worker.is_done) return false;
    worker.thread.join();
    return true;
  });
}

}  // namespace

class HttpServer::OpenConnection {
 public:
  explicit OpenConnection(HttpServer& server) : server_(server), number_(++server.connections_) {
    server_.metrics_.add_connections(1);
  }
  ~OpenConnection() {
    server_.metrics_.add_connections(-1);
    --server_.connections_;
  }
  OpenConnection(const OpenConnection&) = delete;
  OpenConnection& operator=(const OpenConnection&) = delete;

  bool is_one_too_many() const { return number_ > server_.limits_.connections; }

 private:
  HttpServer& server_;
  int64_t number_;  // of those that are open
};

HttpServer::HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
    : limits_(limits), metrics_(metrics), router_(std::make_unique<Router>(std::move(answers), limits, metrics)) {}

HttpServer::~HttpServer() = default;

void HttpServer::run(ListeningSocket& listening, const std::function<bool()>& stop) {
  std::list<Worker> workers;
  while (!stop()) {
    const int socket = listening.accept(kLooksForStopMs);
    join_those_done(workers);
    if (socket < 0) continue;
    if (connections_ >= limits_.connections + kMostRefusals) {
      ::close(socket);
      continue;
    }
    Worker& worker = workers.emplace_back();
    try {
      worker.thread = std::thread([this, socket, &worker] {
        serve_connection(socket);
        worker.is_done = true;
      });
    } catch (const std::system_error& error) {
      log::warning(fmt::format("[serve] a connection cannot be taken: {}", error.what()));
      ::close(socket);
      workers.pop_back();
    }
  }
  listening.close();
  stopping_ = true;
  for (Worker& worker : workers) worker.thread.join();
}

void HttpServer::serve_connection(int socket) {
  const OpenConnection open(*this);
  Connection connection(socket, limits_, stopping_);
  try {
    if (open.is_one_too_many()) return router_->refuse(connection, 503, "too many connections are open");
    while (!connection.closes() && connection.wait_for_request()) router_->answer_request(connection, stopping_);
  } catch (const std::exception& error) {
    log::error(fmt::format("[serve] a connection is closed: {}", error.what()));
  }
}

}  // namespace settrain
