// A request that is refused.
#pragma once

#include <stdexcept>
#include <string>

namespace settrain {

/// The answer has this status, 400 to 599, and the message. Who gets 503 may try again at once.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}

  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace settrain
