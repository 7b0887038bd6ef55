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
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case, values without blanks around them
  bool is_chunked = false;                                     // its body, see check_request()
  int64_t body_bytes = 0;                                      // where it is not

  /// Empty where there is none.
  std::string value(std::string_view name) const;
  /// Whether a body may come, as far as its headers say.
  bool announces_body() const { return value("content-length") + value("transfer-encoding") != ""; }
  /// Whether the client wants the connection to be closed.
  bool closes() const;
};

/// `text` ends with the empty line. Throws HttpError 400 where it is no HTTP/1 request: other ends of lines than CR LF,
/// control characters, a header without a name or with a blank in it; 414 and 431 where a line is longer than
/// kLongestLine. Nothing is guessed: where two readers of a request may disagree, one client's bytes could pass for
/// another's request behind a proxy.
RequestHead parse_request_head(std::string_view text);

/// Finds out what body comes, and refuses what can be refused before it is read. `methods`: what the path takes, "GET,
/// HEAD"; empty where there is nothing. Throws HttpError 400, 404, 405, 411, 413, 415 or 501.
void check_request(RequestHead& head, std::string_view methods, const HttpLimits& limits);

/// The text for httplib, without the headers that it acts upon and the server does not want acted upon: parts of
/// answers (Range), compressed answers (Accept-Encoding), which take more time than they save, and Content-Type, since
/// httplib would read forms by regular expressions, for which a client can make lines that take minutes.
std::string head_for_httplib(std::string_view text);

}  // namespace settrain
