// The server's side of HTTP: connections, requests, limits, routes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "src/serve/http/http_answers.h"
#include "src/serve/http/limits.h"
#include "src/serve/http/listening_socket.h"
#include "src/serve/http/service_metrics.h"

namespace settrain {

class Router;

/// A server around httplib, which reads bodies, routes and writes. GET /, /model, /healthz, /metrics and POST /predict;
/// errors are JSON {"error": "..."}. What a client sends is read strictly (parse_request_head), and for as many bytes
/// and as long as HttpLimits says. Writes no files.
class HttpServer {
 public:
  HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics);
  ~HttpServer();

  /// Answers requests to `socket`, which listens, a thread a connection, until `stop` returns true, which is asked
  /// several times a second. Then the socket is closed, and it returns when the requests that had begun are answered.
  void run(ListeningSocket& socket, const std::function<bool()>& stop);

  /// Answers what comes over one connection, and closes it. run() calls it for each.
  void serve_connection(int socket);

 private:
  class OpenConnection;

  HttpLimits limits_;
  ServiceMetrics& metrics_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> connections_{0};
  std::unique_ptr<Router> router_;
};

}  // namespace settrain
