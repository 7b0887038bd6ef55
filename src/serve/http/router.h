// Requests one by one: from the first byte to the answer.
#pragma once

#include <httplib.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/serve/http/connection.h"
#include "src/serve/http/http_answers.h"
#include "src/serve/http/limits.h"
#include "src/serve/http/request_head.h"
#include "src/serve/http/service_metrics.h"

namespace settrain {

/// httplib's server without its connections: it reads bodies, finds the route, and writes the answer.
class Router : private httplib::Server {
 public:
  Router(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics);

  /// Answers the request whose first byte is there. Thread-safe. `closes`: the connection is to be closed afterwards.
  void answer_request(Connection& connection, bool closes);

  /// Without a request.
  void refuse(Connection& connection, int status, const std::string& message);

 private:
  struct Exchange;
  class BodyMemory;
  static thread_local Exchange* exchange_in_hand;

  void add_routes();
  void add_text(const std::string& path, std::string_view content, const char* type);
  void read_request(Exchange& exchange, bool closes);
  void predict(httplib::Response& response, const httplib::ContentReader& reader);

  HttpAnswers answers_;
  HttpLimits limits_;
  ServiceMetrics& metrics_;
  std::map<std::string, std::string> methods_{};  // by path: "GET, HEAD"
  std::atomic<int64_t> bytes_in_memory_{0};       // of bodies
};

}  // namespace settrain
