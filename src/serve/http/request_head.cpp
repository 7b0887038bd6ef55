#include "src/serve/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "src/serve/http/http_error.h"
#include "src/serve/http/lower_case.h"

namespace settrain {
namespace {

[[noreturn]] void fail(const char* why) {
  throw HttpError(400, fmt::format("this is no HTTP request: {}", why));
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Takes the first line off, without its end.
std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) fail("it is cut short");
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  if (!line.ends_with('\r')) fail("a line does not end with CR LF");
  line.remove_suffix(1);
  for (const unsigned char c : line) {
    if ((c < 0x20 && c != '\t') || c == 0x7F) fail("there is a control character in it");
  }
  return line;
}

void read_request_line(std::string_view line, RequestHead& head) {
  if (std::ssize(line) > kLongestLine) throw HttpError(414, "the address is too long");
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) fail("its first line");
  head.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1), version = line.substr(second + 1);
  head.path = target.substr(0, target.find_first_of("?#"));
  if (!is_token(head.method) || target.empty()) fail("its first line");
  head.is_http_1_0 = version == "HTTP/1.0";
  if (version != "HTTP/1.1" && version != "HTTP/1.0") fail("its version is neither HTTP/1.1 nor HTTP/1.0");
}

}  // namespace

std::vector<std::string> RequestHead::values(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [other, value] : headers) {
    if (other == name) found.push_back(value);
  }
  return found;
}

bool RequestHead::closes() const {
  if (is_http_1_0) return true;
  for (const std::string& options : values("connection")) {
    for (std::string_view left = options; !left.empty();) {
      const size_t comma = std::min(left.find(','), left.size());
      if (lower_case(without_blanks(left.substr(0, comma))) == "close") return true;
      left.remove_prefix(std::min(comma + 1, left.size()));
    }
  }
  return false;
}

bool RequestHead::waits_for_continue() const {
  const std::vector<std::string> expected = values("expect");
  return !is_http_1_0 && !expected.empty() && lower_case(expected[0]) == "100-continue";
}

RequestHead parse_request_head(std::string_view text) {
  RequestHead head;
  read_request_line(next_line(text), head);
  for (std::string_view line = next_line(text); !line.empty(); line = next_line(text)) {
    if (std::ssize(line) > kLongestLine) throw HttpError(431, "a header is too long");
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) fail("a header");
    head.headers.emplace_back(lower_case(line.substr(0, colon)), without_blanks(line.substr(colon + 1)));
  }
  if (!text.empty()) fail("its end");
  return head;
}

void check_request(RequestHead& head, std::string_view methods, const HttpLimits& limits) {
  const std::vector<std::string> lengths = head.values("content-length"), encodings = head.values("transfer-encoding");
  if (lengths.size() + encodings.size() > 1) throw HttpError(400, "it is said twice how long the body is");
  if (!encodings.empty() && lower_case(encodings[0]) != "chunked") {
    throw HttpError(501, "of transfer encodings, chunked alone is understood");
  }
  head.is_chunked = !encodings.empty();
  if (!lengths.empty()) {
    const std::string& length = lengths[0];
    if (length.empty() || length.find_first_not_of("0123456789") != std::string::npos)
      fail("Content-Length is no number");
    head.body_bytes = length.size() > 15 ? INT64_MAX : std::stoll(length);
  }
  if (methods.empty()) throw HttpError(404, "there is nothing at this address; GET / is the page");
  if (fmt::format(", {},", methods).find(fmt::format(" {},", head.method)) == std::string::npos) {
    throw HttpError(405, fmt::format("{} takes {}", head.path, methods));
  }
  if (head.method != "POST") {
    if (head.is_chunked || head.body_bytes > 0)
      throw HttpError(400, fmt::format("a {} request has no body", head.method));
    return;
  }
  if (lengths.empty() && encodings.empty()) throw HttpError(411, "it is not said how long the body is");
  for (const std::string& coding : head.values("content-encoding")) {
    if (lower_case(coding) == "identity") continue;
    throw HttpError(415, "compressed bodies are not taken: send the image as it is");
  }
  if (head.body_bytes > limits.bytes) {
    throw HttpError(413, fmt::format("the body is larger than the {} bytes that are taken", limits.bytes));
  }
}

std::string head_for_httplib(const RequestHead& head) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\n", head.method, head.path);
  if (head.is_chunked) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (head.method == "POST") {
    text += fmt::format("Content-Length: {}\r\n", head.body_bytes);
  }
  if (head.waits_for_continue()) text += "Expect: 100-continue\r\n";
  return text + "\r\n";
}

}  // namespace settrain
