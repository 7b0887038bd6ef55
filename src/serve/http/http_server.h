// The server's side of HTTP: connections, requests, limits, routes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "src/serve/http/service_metrics.h"
#include "src/serve/http/upload.h"

namespace settrain {

/// Limits on what clients may ask of the server.
struct HttpLimits {
  int64_t bytes = int64_t{32} << 20;  // of a request's body
  int64_t images = 16;                // photographs of one specimen
  int64_t connections = 64;           // at a time
  double seconds = 20;                // for a request to arrive, and for an answer to be taken
  double idle_seconds = 5;            // of a connection between two requests
};

/// Bodies that may lie in memory at a time, in bodies of the largest size.
inline constexpr int64_t kBodiesInMemory = 8;

/// A request that is refused: the answer has this status, 400 to 599, and the message. A 503 says that the client may
/// try again in a second.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}

  int status() const { return status_; }

 private:
  int status_;
};

/// The contents of the server's answers.
struct HttpAnswers {
  std::string_view page_html, page_css, page_js;                         // GET / and the files it asks for
  std::string model;                                                     // GET /model: JSON
  std::function<std::string(std::span<const Upload> images)> predict{};  // POST /predict: JSON; throws HttpError;
                                                                         // called by several threads at a time
};

class ListeningSocket;

/// GET /, /model, /healthz, /metrics and POST /predict; errors are JSON {"error": "..."}. Boost.Beast parses requests;
/// the server refuses in addition what two readers might understand differently: line ends other than CR LF, folded
/// headers, duplicate or conflicting lengths, duplicate Host, trailers. Behind a proxy, one client's bytes could
/// otherwise pass for another's request. A whole request has a deadline, and a limit of bytes. Writes no
/// files.
class HttpServer {
 public:
  HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
      : answers_(std::move(answers)), limits_(limits), metrics_(metrics) {}

  /// Answers requests to `socket`, which listens, a thread a connection, until `stop` returns true, which is asked
  /// several times a second. Then the socket is closed, and it returns when the requests that had begun are answered.
  void run(ListeningSocket& socket, const std::function<bool()>& stop);

  /// Answers what comes over one connection, and closes it. run() calls it for each.
  void serve_connection(int socket);

 private:
  class Connection;

  HttpAnswers answers_;
  HttpLimits limits_;
  ServiceMetrics& metrics_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> connections_{0};
  std::atomic<int64_t> bytes_in_memory_{0};  // of bodies
};

}  // namespace settrain
