#include "src/serve/http/http_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <list>
#include <memory>
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

// Threads that are joined whatever happens.
class Workers {
 public:
  explicit Workers(std::atomic<bool>& stopping) : stopping_(stopping) {}
  ~Workers() {
    stopping_ = true;
    for (Worker& worker : workers_) worker.thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int64_t size() const { return std::ssize(workers_); }

  template <class Work>
  void start(const Work& work) {
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread = std::thread([&worker, work] {
        work();
        worker.is_done = true;
      });
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  }

  void join_those_done() {
    workers_.remove_if([](Worker& worker) {
      if (!worker.is_done) return false;
      worker.thread.join();
      return true;
    });
  }

 private:
  struct Worker {
    std::atomic<bool> is_done{false};
    std::thread thread{};
  };
  std::atomic<bool>& stopping_;
  std::list<Worker> workers_{};
};

}  // namespace

class HttpServer::OpenConnection {
 public:
  explicit OpenConnection(HttpServer& server)
      : server_(server), is_one_too_many_(++server.connections_ > server.limits_.connections) {
    server_.metrics_.add_connections(1);
    if (is_one_too_many_) --server_.connections_;  // it takes nobody's place
  }
  ~OpenConnection() {
    server_.metrics_.add_connections(-1);
    if (!is_one_too_many_) --server_.connections_;
  }
  OpenConnection(const OpenConnection&) = delete;
  OpenConnection& operator=(const OpenConnection&) = delete;

  bool is_one_too_many() const { return is_one_too_many_; }

 private:
  HttpServer& server_;
  bool is_one_too_many_;
};

HttpServer::HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
    : limits_(limits), metrics_(metrics), router_(std::make_unique<Router>(std::move(answers), limits, metrics)) {}

HttpServer::~HttpServer() = default;

void HttpServer::run(ListeningSocket& listening, const std::function<bool()>& stop) {
  Workers workers(stopping_);
  while (!stop()) {
    const int socket = listening.accept(kLooksForStopMs);
    workers.join_those_done();
    if (socket < 0) continue;
    if (workers.size() >= limits_.connections + kMostRefusals) {
      ::close(socket);
      continue;
    }
    try {
      workers.start([this, socket] { serve_connection(socket); });
    } catch (const std::exception& error) {
      ::close(socket);
      log::warning(fmt::format("[serve] a connection cannot be taken: {}", error.what()));
    }
  }
  listening.close();
}

void HttpServer::serve_connection(int socket) {
  const OpenConnection open(*this);
  Connection connection(socket, limits_, stopping_);
  try {
    if (open.is_one_too_many()) return router_->refuse(connection, 503, "too many connections are open");
    while (!connection.closes() && connection.wait_for_request()) router_->answer_request(connection, stopping_);
  } catch (...) {
    // Not even the refusal came about, for want of memory: there is nothing to say it with either.
  }
}

}  // namespace settrain
