// What a request says before its body, read strictly.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/serve/http/limits.h"

namespace settrain {

struct RequestHead {
  std::string method, path;                                    // the path without a query
  bool is_http_1_0 = false;                                    // which has one request a connection
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case, values without blanks around them
  bool is_chunked = false;                                     // its body, see check_request()
  int64_t body_bytes = 0;                                      // where it is not

  /// Of all headers of that name, in their order.
  std::vector<std::string> values(std::string_view name) const;
  /// Whether its headers say that a body comes, or how long none is.
  bool announces_body() const { return !values("content-length").empty() || !values("transfer-encoding").empty(); }
  /// Whether the client wants the connection to be closed.
  bool closes() const;
  /// Whether the client waits for "100 Continue" before it sends the body.
  bool waits_for_continue() const;
};

/// `text` ends with the empty line. Throws HttpError 400 where it is no HTTP/1 request: other ends of lines than CR LF,
/// control characters, a header without a name or with a blank in it; 414 and 431 where a line is longer than
/// kLongestLine. Nothing is guessed: where two readers of a request may disagree, one client's bytes could pass for
/// another's request behind a proxy.
RequestHead parse_request_head(std::string_view text);

/// Finds out what body comes, and refuses what can be refused before it is read. `methods`: what the path takes, "GET,
/// HEAD"; empty where there is nothing. Throws HttpError 400, 404, 405, 411, 413, 415 or 501.
void check_request(RequestHead& head, std::string_view methods, const HttpLimits& limits);

/// The head that httplib is given in its place: of what the client wrote, the method and the path alone, which were
/// checked. httplib decodes, guesses and forgives, and would act upon more than the server wants to: ranges, compressed
/// answers and bodies, and forms, which it reads by regular expressions for which a client can make lines that take
/// minutes.
std::string head_for_httplib(const RequestHead& head);

}  // namespace settrain
