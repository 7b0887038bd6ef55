#include "src/serve/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "src/serve/http/http_error.h"
#include "src/serve/http/lower_case.h"

namespace settrain {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::array<std::string_view, 3> kDropped{"range", "accept-encoding", "content-type"};

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
  if (version != "HTTP/1.1" && version != "HTTP/1.0") fail("its version is neither HTTP/1.1 nor HTTP/1.0");
}

}  // namespace

std::string RequestHead::value(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [name](const auto& header) { return header.first == name; });
  return found == headers.end() ? "" : found->second;
}

bool RequestHead::closes() const {
  return lower_case(value("connection")).find("close") != std::string::npos;
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
  std::vector<std::string> lengths, encodings;
  for (const auto& [name, value] : head.headers) {
    if (name == "content-length") lengths.push_back(value);
    if (name == "transfer-encoding") encodings.push_back(lower_case(value));
  }
  if (lengths.size() + encodings.size() > 1) throw HttpError(400, "it is said twice how long the body is");
  if (!encodings.empty() && encodings[0] != "chunked") {
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
  if (const std::string coding = lower_case(head.value("content-encoding")); !coding.empty() && coding != "identity") {
    throw HttpError(415, "compressed bodies are not taken: send the image as it is");
  }
  if (head.body_bytes > limits.bytes) {
    throw HttpError(413, fmt::format("the body is larger than the {} bytes that are taken", limits.bytes));
  }
}

std::string head_for_httplib(std::string_view text) {
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find(kLineEnd, begin) + kLineEnd.size();
    const std::string_view line = text.substr(begin, end - begin);
    const std::string name = lower_case(line.substr(0, line.find(':')));
    if (std::find(kDropped.begin(), kDropped.end(), name) == kDropped.end()) kept += line;
    begin = end;
  }
  return kept;
}

}  // namespace settrain
