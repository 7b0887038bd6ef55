// The server's side of HTTP: connections, requests, limits, routes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/serve/http/limits.h"
#include "src/serve/http/service_metrics.h"
#include "src/serve/http/upload.h"

namespace settrain {

/// What the routes answer with.
struct HttpAnswers {
  std::string_view page_html, page_css, page_js;                         // GET / and the files it asks for
  std::string model;                                                     // GET /model: JSON
  std::function<std::string(std::span<const Upload> images)> predict{};  // POST /predict: JSON; throws HttpError;
                                                                         // called by several threads at a time
};

/// A server on httplib's parser. GET /, /model, /healthz, /metrics and POST /predict; errors are JSON {"error": "..."}.
/// Whatever a client sends costs bounded time and memory: see HttpLimits and Connection. Writes no files.
class HttpServer {
 public:
  HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics);
  ~HttpServer();

  /// `port` 0: any free one. Returns the port. Throws Error where it cannot be had.
  int bind(const std::string& host, int port);
  /// Answers requests, by threads of its own, until `stop` returns true, which is asked several times a second. Then
  /// no connection is taken any more, and it returns when the requests that had begun are answered.
  void run(const std::function<bool()>& stop);

  /// Answers what comes over one connection, and closes it. run() calls it for each.
  void serve_connection(int socket);

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace settrain
