#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/core/text.h"
#include "src/serve/http/http_server.h"

namespace settrain {
namespace {

constexpr std::string_view kForm = "multipart/form-data", kPartLineEnd = "\r\n", kHeaderEnd = "\r\n\r\n";
constexpr size_t kLongestBoundary = 70, kLongestHeader = 8192, kMostParts = 1000;

// A part of a form.
struct Part {
  std::optional<std::string> file{}, field{};  // the names that its headers give, fit for a message
  bool has_type_of_file = false;
  std::string_view content{};

  // Browsers send such a part for a file input in which nothing was chosen.
  bool is_nothing() const { return file && file->empty() && content.empty(); }
  // Programs that write forms by hand may leave out the names.
  bool is_file() const { return !is_nothing() && ((file && !file->empty()) || !field || has_type_of_file); }
};

[[noreturn]] void fail_form(const std::string& message) {
  throw HttpError(400, "the form cannot be read: " + message);
}

// The value of `key="..."` or key=... behind a semicolon; nullopt where there is none. A quoted value may hold
// semicolons, and \" and \\ for a quote and a backslash, as curl writes them.
std::optional<std::string> parameter(std::string_view header, std::string_view key) {
  for (size_t at = header.find(';'); at != std::string_view::npos; at = header.find(';', at)) {
    at = std::min(header.find_first_not_of("; \t", at), header.size());
    const size_t name_end = std::min(header.find_first_of("=;", at), header.size());
    const bool is_wanted = lower_case(header.substr(at, name_end - at)) == key;
    at = name_end;
    if (at == header.size() || header[at] == ';') continue;
    std::string value;
    if (header.substr(++at, 1) == "\"") {
      while (++at < header.size() && header[at] != '"') {
        const std::string_view pair = header.substr(at, 2);
        if (pair == "\\\"" || pair == "\\\\") ++at;
        value += header[at];
      }
    } else {
      const size_t end = std::min(header.find_first_of("; \t\r", at), header.size());
      value = header.substr(at, end - at);
      at = end;
    }
    if (is_wanted) return value;
  }
  return std::nullopt;
}

Part read_part(std::string_view headers, std::string_view content) {
  constexpr std::string_view kDisposition = "content-disposition:", kType = "content-type:";
  const auto fit = [](const std::optional<std::string>& name) {
    return name ? std::optional(printable(first_characters(*name, 100))) : std::nullopt;
  };
  Part part{.content = content};
  for (size_t begin = 0; begin < headers.size();) {
    const size_t end = std::min(headers.find(kPartLineEnd, begin), headers.size());
    const std::string_view line = headers.substr(begin, end - begin);
    begin = end + kPartLineEnd.size();
    if (lower_case(line.substr(0, kDisposition.size())) == kDisposition) {
      part.file = fit(parameter(line, "filename"));
      if (!part.file) part.file = fit(parameter(line, "filename*"));  // of RFC 5987, for names beyond ASCII
      part.field = fit(parameter(line, "name"));
    } else if (lower_case(line.substr(0, kType.size())) == kType) {
      const std::string_view value = line.substr(std::min(line.find_first_not_of(" \t", kType.size()), line.size()));
      const std::string type = lower_case(value.substr(0, value.find_first_of("; \t")));
      part.has_type_of_file = type.starts_with("image/") || type == "application/octet-stream";
    }
  }
  return part;
}

}  // namespace

std::vector<Upload> find_uploads(std::string_view body, std::string_view content_type, int64_t most) {
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; \t"));
  if (lower_case(type) != kForm) {
    if (body.empty()) throw HttpError(400, "the request holds no image: its body is to be the image file's bytes");
    return {{"the image", body}};
  }
  const std::string boundary = parameter(content_type, "boundary").value_or("");
  if (boundary.empty() || boundary.size() > kLongestBoundary) fail_form("its boundary is to have 1 to 70 characters");
  const std::string first = "--" + boundary, next = fmt::format("\r\n--{}", boundary);
  // Bytes in front of the first boundary are no part of the form.
  size_t at = body.starts_with(first) ? first.size() : body.find(next);
  if (at == std::string_view::npos) fail_form("there is no part in it");
  if (!body.starts_with(first)) at += next.size();

  std::vector<Part> parts;
  while (body.substr(at, 2) != "--") {
    at = body.find_first_not_of(" \t", at);
    if (at == std::string_view::npos || body.substr(at, 2) != kPartLineEnd) fail_form("it is cut short");
    // Headers may be missing: the part then begins with the empty line.
    const size_t headers_end = body.substr(0, std::min(body.size(), at + kLongestHeader)).find(kHeaderEnd, at);
    if (headers_end == std::string_view::npos) fail_form("a part's headers do not end");
    const size_t begin = headers_end + kHeaderEnd.size(), end = body.find(next, begin);
    if (end == std::string_view::npos) fail_form("it is cut short");
    if (parts.size() == kMostParts) throw HttpError(413, fmt::format("the form has more than {} parts", kMostParts));
    parts.push_back(read_part(body.substr(at, headers_end - at), body.substr(begin, end - begin)));
    at = end + next.size();
  }

  // Without any file the fields are the images: `curl -F image='<a.png'` sends no file names.
  const bool has_files = std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_file(); });
  std::vector<Upload> uploads;
  for (const Part& part : parts) {
    if (part.is_nothing() || (has_files && !part.is_file())) continue;
    const std::string known = part.file.value_or("").empty() ? part.field.value_or("") : *part.file;
    const std::string name = known.empty() ? fmt::format("image {}", uploads.size() + 1) : fmt::format("'{}'", known);
    const std::string field = part.field.value_or("");
    if (part.content.empty()) throw HttpError(400, name + " is empty", field);
    if (std::ssize(uploads) == most) {
      throw HttpError(413, fmt::format("there are more than {} images, the most that are taken together", most));
    }
    uploads.push_back({name, part.content, field});
  }
  if (uploads.empty()) throw HttpError(400, "the form holds no image");
  return uploads;
}

}  // namespace settrain
