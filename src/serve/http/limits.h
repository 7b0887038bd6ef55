// The limits of a request: what the server takes, and how it refuses more.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace settrain {

/// A request that is refused: the answer has this status, 400 to 599, and the message. A 503 says that the client may
/// try again in a second. `field`: the form's field that is to blame, or empty.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& message, std::string field = "")
      : std::runtime_error(message), status_(status), field_(std::move(field)) {}

  int status() const { return status_; }
  const std::string& field() const { return field_; }

 private:
  int status_;
  std::string field_;
};

/// Limits on the requests of all clients.
struct HttpLimits {
  int64_t bytes = int64_t{32} << 20;  // of a request's body
  int64_t images = 16;                // of a request: photographs of one specimen
  int64_t connections = 64;           // at a time
  double seconds = 20;                // for a request to arrive, and for an answer to be received
  double idle_seconds = 5;            // of a connection before its first request, and between two

  /// The refusal of a larger body, where Content-Length or the bytes that arrived exceed `bytes`.
  HttpError body_too_large() const {
    return {413, fmt::format("the body is larger than the {} bytes that are taken", bytes)};
  }

  /// Bytes of all bodies that may lie in memory at a time.
  int64_t bytes_of_all_bodies() const { return 8 * bytes; }
};

}  // namespace settrain
