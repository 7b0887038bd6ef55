
#include <fmt/format.h>

#include <algorithm>

#include "src/core/text.h"
#include "src/serve/http/http_server.h"

namespace settrain {
namespace {

constexpr std::string_view kForm = "multipart/form-data", kPartLineEnd = "\r\n", kHeaderEnd = "\r\n\r\n";
constexpr size_t kLongestBoundary = 70, kLongestHeader = 8192;

[[noreturn]] void fail_form(const std::string& message) {
  throw HttpError(400, "the form cannot be read: " + message);
}

// The value of `key="..."` or key=... behind a semicolon; empty where there is none.
std::string parameter(std::string_view header, const std::string& key) {
  const std::string small = lower_case(header);
  for (size_t at = small.find(';'); at != std::string::npos; at = small.find(';', at)) {
    at = small.find_first_not_of("; \t", at);
    if (at == std::string::npos || small.compare(at, key.size() + 1, key + '=') != 0) continue;
    std::string_view value = header.substr(at + key.size() + 1);
    if (value.starts_with('"')) return std::string(value.substr(1, value.find('"', 1) - 1));
    return std::string(value.substr(0, value.find_first_of("; \t\r")));
  }
  return "";
}

// The part's file name, or its field's, as its headers have them.
std::string name_of(std::string_view headers, size_t number) {
  for (const char* key : {"filename", "name"}) {
    for (size_t begin = 0; begin < headers.size();) {
      const size_t end = std::min(headers.find(kPartLineEnd, begin), headers.size());
      const std::string_view line = headers.substr(begin, end - begin);
      begin = end + kPartLineEnd.size();
      if (!lower_case(line.substr(0, 20)).starts_with("content-disposition:")) continue;
      const std::string name = parameter(line, key);
      if (!name.empty()) return fmt::format("'{}'", printable(first_characters(name, 100)));
    }
  }
  return fmt::format("image {}", number);
}

}  // namespace

std::vector<Upload> find_uploads(std::string_view body, std::string_view content_type, int64_t most) {
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; \t"));
  if (lower_case(type) != kForm) {
    if (body.empty()) throw HttpError(400, "the request holds no image: its body is to be the image file's bytes");
    return {{"the image", body}};
  }
  const std::string boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kLongestBoundary) fail_form("its boundary is to have 1 to 70 characters");
  const std::string first = "--" + boundary, next = fmt::format("\r\n--{}", boundary);
  // Bytes in front of the first boundary are no part of the form.
  size_t at = body.starts_with(first) ? first.size() : body.find(next);
  if (at == std::string_view::npos) fail_form("there is no part in it");
  if (!body.starts_with(first)) at += next.size();

  std::vector<Upload> uploads;
  while (body.substr(at, 2) != "--") {
    at = body.find_first_not_of(" \t", at);
    if (at == std::string_view::npos || body.substr(at, 2) != kPartLineEnd) fail_form("it is cut short");
    // Headers may be missing: the part then begins with the empty line.
    const size_t headers_end = body.substr(0, std::min(body.size(), at + kLongestHeader)).find(kHeaderEnd, at);
    if (headers_end == std::string_view::npos) fail_form("a part's headers do not end");
    const size_t begin = headers_end + kHeaderEnd.size(), end = body.find(next, begin);
    if (end == std::string_view::npos) fail_form("it is cut short");
    const std::string name = name_of(body.substr(at, headers_end - at), uploads.size() + 1);
    if (end == begin) throw HttpError(400, name + " is empty");
    if (std::ssize(uploads) == most) {
      throw HttpError(413, fmt::format("there are more than {} images, the most that are taken together", most));
    }
    uploads.push_back({name, body.substr(begin, end - begin)});
    at = end + next.size();
  }
  if (uploads.empty()) throw HttpError(400, "the form holds no image");
  return uploads;
}

}  // namespace settrain
