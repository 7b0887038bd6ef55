// Bytes that come over a connection: HttpServer, and all that it calls to read requests and forms.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/serve/http/http_server.h"
#include "tests/support/fuzzing.h"

using namespace settrain;
using test::must;

namespace {

constexpr HttpLimits kLimits{.bytes = 2000, .images = 3, .seconds = 1, .idle_seconds = 0.001};

std::string answer(std::span<const Upload> images, std::string_view) {
  must(!images.empty() && std::ssize(images) <= kLimits.images, "as many images as are taken");
  size_t total = 0;
  for (const Upload& image : images) {
    must(!image.bytes.empty() && !image.name.empty(), "an image has bytes and a name");
    must(image.field.find_first_of("\r\n") == std::string::npos, "a field's name is one line");
    total += std::string(image.bytes).size();  // every byte is readable
  }
  must(static_cast<int64_t>(total) <= kLimits.bytes, "no more bytes than are taken");
  if (images[0].bytes[0] == '!') throw HttpError(400, "refused", images[0].field);
  return "answered\n";
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ServiceMetrics metrics;
  static HttpServer server({.page_html = "page",
                            .page_css = "css",
                            .page_js = "js",
                            .model = "{}\n",
                            .predict = answer,
                            .origins = {"https://a.b"}},
                           kLimits, metrics);
  int sockets[2];
  must(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "there is a pair of sockets");
  // Shorter than what a socket holds: nobody needs to read at the same time.
  must(::send(sockets[1], data, size, 0) == static_cast<ssize_t>(size), "all is sent");
  ::shutdown(sockets[1], SHUT_WR);
  server.serve_connection(sockets[0]);
  std::array<char, 65536> buffer{};
  std::string back;
  for (ssize_t n = 0; (n = ::recv(sockets[1], buffer.data(), buffer.size(), 0)) > 0;) {
    back.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(sockets[1]);
  must(back.empty() || back.starts_with("HTTP/1.1 "), "what comes back is HTTP");
  must(count(back, "\r\nConnection: close\r\n") <= 1, "nothing is answered behind an answer that closes");
  must(count(back, "\r\nAccess-Control-Allow-Origin: ") ==
           count(back, "\r\nAccess-Control-Allow-Origin: https://a.b\r\n"),
       "no other origin is allowed");
  must(metrics.text().find("status=\"500\"") == std::string::npos, "nothing goes wrong inside");
  return 0;
}
