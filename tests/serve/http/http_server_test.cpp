#include "src/serve/http/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/serve/http/test_server.h"

using namespace settrain;
using namespace settrain::test;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

TEST_CASE("percent codes of queries stand for bytes, and what is none stays") {
  CHECK(decoded_part("alps") == "alps");
  CHECK(decoded_part("%61l%70s%5F%5f") == "alps__");
  for (const char* text : {"%", "%4", "a%zz", "%%", "100%"}) CHECK(decoded_part(text) == text);
  CHECK(decoded_part("%00%ff") == std::string("\0\xFF", 2));
}

TEST_CASE("pages, the model and health are there") {
  TestServer test;
  const std::string page = answer_to(test, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK_THAT(page, StartsWith("HTTP/1.1 200") &&
                       Contains("Content-Security-Policy: default-src 'none'; script-src 'self'") &&
                       Contains("text/html; charset=utf-8") && Contains("\r\n\r\n<p>"));
  CHECK_THAT(answer_to(test, "GET /page.css HTTP/1.1\r\nHost: a\r\n\r\n"), Contains("text/css") && Contains("p {}"));
  CHECK_THAT(answer_to(test, "GET /page.js HTTP/1.1\r\nHost: a\r\n\r\n"),
             Contains("text/javascript") && Contains("1;"));
  CHECK_THAT(answer_to(test, "GET /model HTTP/1.1\r\nHost: a\r\n\r\n"),
             Contains("application/json") && Contains("{\"names\":[]}"));
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
             StartsWith("HTTP/1.1 200") && Contains("\r\n\r\nok\n"));
  CHECK_THAT(answer_to(test, "HEAD /model HTTP/1.1\r\nHost: a\r\n\r\n"),
             Contains("Content-Length: 13\r\n") && !Contains("names"));
  CHECK_THAT(answer_to(test, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
             Contains("text/plain; version=0.0.4") &&
                 Contains("settrain_requests_total{path=\"/healthz\",status=\"200\"} 1\n"));
}

TEST_CASE("bodies come as images, whole, by length or in chunks, and as forms") {
  TestServer test;
  CHECK_THAT(answer_to(test, post("abc")), StartsWith("HTTP/1.1 200") && Contains("\r\n\r\n1 3\n"));
  CHECK_THAT(answer_to(test, post(std::string(1000, 'x'))), Contains("\r\n\r\n1 1000\n"));
  CHECK_THAT(answer_to(test, std::string(kHead) + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"),
             StartsWith("HTTP/1.1 200") && Contains("\r\n\r\n1 5\n"));
  const std::string form = "--b\r\n\r\nfirst\r\n--b\r\n\r\nsecond\r\n--b--\r\n";
  CHECK_THAT(answer_to(test, post(form, "Content-Type: multipart/form-data; boundary=b\r\n")),
             Contains("\r\n\r\n2 5\n"));
  CHECK_THAT(answer_to(test, post("abc", "Expect: 100-continue\r\n")),
             StartsWith("HTTP/1.1 100") && Contains("HTTP/1.1 200") && Contains("\r\n\r\n1 3\n"));
}

TEST_CASE("a connection answers one request after the other") {
  TestServer test;
  const std::string both = answer_to(test, post("abc") + "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + post("abcd"));
  CHECK(answers_in(both) == 3);
  CHECK_THAT(both, Contains("1 3\n") && Contains("ok\n") && Contains("1 4\n"));
  CHECK(answers_in(answer_to(test, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + post("abc"))) ==
        1);
}

TEST_CASE("an image that is refused does not end the connection") {
  TestServer test;
  CHECK(answers_in(answer_to(test, post("refuse") + post("fail") + post("abc"))) == 3);
}

TEST_CASE("errors are JSON with a status that fits") {
  TestServer test;
  const auto refused = [&](const std::string& sent) {
    const std::string answer = answer_to(test, sent);
    CHECK_THAT(answer, Contains("application/json") && Contains("{\"error\":\""));
    return answer.substr(0, 12);
  };
  CHECK(refused(post("refuse")) == "HTTP/1.1 400");
  CHECK(refused(post("")) == "HTTP/1.1 400");
  CHECK(refused("GET /etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n") == "HTTP/1.1 404");
  CHECK(refused("GET /predict HTTP/1.1\r\nHost: a\r\n\r\n") == "HTTP/1.1 405");
  CHECK(refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx") == "HTTP/1.1 405");
  CHECK(refused("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n") == "HTTP/1.1 405");
  CHECK(refused(std::string(kHead) + "\r\n") == "HTTP/1.1 411");
  CHECK(refused(post(std::string(1001, 'x'))) == "HTTP/1.1 413");
  CHECK(refused(std::string(kHead) + "Content-Length: 99999999999999999999\r\n\r\n") == "HTTP/1.1 413");
  CHECK(refused(std::string(kHead) + "Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n") == "HTTP/1.1 413");
  CHECK(refused(std::string(kHead) + "Transfer-Encoding: chunked\r\n\r\nfff\r\n" + std::string(0xfff, 'x') +
                "\r\n0\r\n\r\n") == "HTTP/1.1 413");
  CHECK(refused(post("abc", "Content-Encoding: gzip\r\n")) == "HTTP/1.1 415");
  CHECK(refused(post("abc", "Transfer-Encoding: chunked\r\n")) == "HTTP/1.1 400");
  CHECK(refused(post("abc", "Content-Length: 2\r\n")) == "HTTP/1.1 400");
  CHECK(refused(std::string(kHead) + "Content-Length: -1\r\n\r\n") == "HTTP/1.1 400");
  CHECK(refused(std::string(kHead) + "Transfer-Encoding: gzip, chunked\r\n\r\n") == "HTTP/1.1 501");
  CHECK(refused(std::string(kHead) + "Transfer-Encoding: chunked\r\n\r\nno number\r\n") == "HTTP/1.1 400");
  CHECK(refused(std::string(kHead) + "Content-Length: 10\r\n\r\nabc") == "HTTP/1.1 400");
  CHECK(refused("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n") == "HTTP/1.1 414");
  CHECK(refused("GET /" + std::string(90000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n") == "HTTP/1.1 414");
  CHECK(refused("GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + std::string(9000, 'a') + "\r\n\r\n") == "HTTP/1.1 431");
  CHECK(refused("nonsense\r\n\r\n") == "HTTP/1.1 400");
  CHECK(refused(post("no memory")) == "HTTP/1.1 503");
}

TEST_CASE("what goes wrong inside stays inside") {
  TestServer test;
  const std::string answer = answer_to(test, post("fail"));
  CHECK_THAT(answer, StartsWith("HTTP/1.1 500") && !Contains("secret"));
}

TEST_CASE("what readers of HTTP may understand differently ends the connection") {
  // Behind a proxy that reads it otherwise, the hidden text would pass for another client's request.
  TestServer test;
  const std::string hidden = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", length = std::to_string(hidden.size());
  for (const std::string& sent :
       {post(hidden, "Content-Encoding: gzip\r\n"),
        "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n" + hidden,
        "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + hidden,
        "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n" + hidden,
        "nonsense\r\n" + hidden,
        "POST /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n" + hidden,
        kHead + ("Content-Length : " + length) + "\r\n\r\n" + hidden,
        kHead + ("Content-Length: " + length) + "\n\r\n" + hidden,
        kHead + ("X: y\r\n Content-Length: " + length) + "\r\n\r\n" + hidden,
        kHead + std::string("Content-Length: \r\n\r\n") + hidden,
        kHead + std::string("Content-Length:\r\nContent-Length: 34\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n") + hidden,
        post(hidden, "Content-Encoding:\r\nContent-Encoding: gzip\r\n"),
        kHead + std::string("Content-Length: %33%34\r\n\r\n") + hidden,
        kHead + std::string("Content-Length: 0x22\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3\r\nabcjunk\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3;a=\"\n\"\r\nabc\r\n0\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0;a=\"\n\"\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3;a=\"\\\x01\"\r\nabc\r\n0\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3;a=\"\x7F\"\r\nabc\r\n0\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3;a\n\r\nabc\r\n0\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\n\r\n\r\n") + hidden,
        kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nContent-Length: 3\r\n\r\n") + hidden}) {
    CAPTURE(sent);
    const std::string answer = answer_to(test, sent);
    CHECK(answers_in(answer) == 1);
    CHECK_THAT(answer, StartsWith("HTTP/1.1 4") && Contains("Connection: close\r\n"));
  }
}

TEST_CASE("one valid Host is needed") {
  TestServer test;
  const std::string next = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const char* headers : {"", "X: y\r\n", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n", "Host: a b\r\n",
                              "Host: a/b\r\n", "Host: user@a\r\n", "Host: a:b\r\n", "Host: [::1\r\n",
                              "Host: a:80:80\r\n", "Host: http://a\r\n", "Host: a%\r\n", "Host: a, b\r\n"}) {
    for (const char* line : {"GET /healthz HTTP/1.1\r\n", "GET http://a/healthz HTTP/1.1\r\n"}) {
      CAPTURE(headers, line);
      const std::string answer = answer_to(test, line + std::string(headers) + "\r\n" + next);
      CHECK(answers_in(answer) == 1);
      CHECK_THAT(answer, StartsWith("HTTP/1.1 400") && Contains("Host") && Contains("Connection: close\r\n"));
    }
  }
  for (const char* host :
       {"", "a", "A.example.org:8080", "127.0.0.1:", "[::1]:8080", "[fe80::1%eth0]", "my_host", "%41"}) {
    CAPTURE(host);
    const std::string line = "GET /healthz HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
    CHECK(answers_in(answer_to(test, line + next)) == 2);
  }
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_CASE("addresses come in all forms of HTTP") {
  TestServer test;
  const auto status_of = [&](const std::string& method, const std::string& target) {
    const std::string body = method == "POST" ? "Content-Length: 3\r\n\r\nabc" : "\r\n";
    return answer_to(test, method + ' ' + target + " HTTP/1.1\r\nHost: a\r\n" + body).substr(0, 12);
  };
  for (const char* target : {"/healthz", "/healthz?x", "/healthz#x", "http://a/healthz", "HTTP://b:8080/healthz?x=/y",
                             "https://[::1]:443/healthz", "http://a", "http://a?x", "http://a:/model"}) {
    CAPTURE(target);
    CHECK(status_of("GET", target) == "HTTP/1.1 200");
  }
  CHECK(status_of("POST", "http://a/predict") == "HTTP/1.1 200");
  CHECK(status_of("HEAD", "http://a/model") == "HTTP/1.1 200");
  for (const char* target : {"http://a/nothing", "http://a/http://a/healthz", "/%68ealthz", "//healthz", "/healthz/"}) {
    CAPTURE(target);
    CHECK(status_of("GET", target) == "HTTP/1.1 404");
  }
  for (const char* target :
       {"healthz", "*", "a:80", "http:///healthz", "http://:80/healthz", "http:/healthz", "ftp://a/healthz",
        "http://user:x@a/healthz", "http://a:b/healthz", "http://a\\b/healthz", "://a/healthz"}) {
    CAPTURE(target);
    CHECK(status_of("GET", target) == "HTTP/1.1 400");
  }
  CHECK_THAT(answer_to(test, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
             StartsWith("HTTP/1.1 405") && Contains("Allow: GET, HEAD, POST, OPTIONS\r\n") &&
                 Contains("Connection: close\r\n") && !Contains("ok"));
}

TEST_CASE("OPTIONS is answered with the methods of an address") {
  TestServer test;
  const auto options = [&](const std::string& target) {
    return answer_to(test,
                     "OPTIONS " + target + " HTTP/1.1\r\nHost: a\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  for (const auto& [target, methods] :
       std::vector<std::pair<std::string, std::string>>{{"*", "GET, HEAD, POST, OPTIONS"},
                                                        {"/predict", "POST, OPTIONS"},
                                                        {"http://a/model?x", "GET, HEAD, OPTIONS"}}) {
    const std::string answers = options(target), first = answers.substr(0, answers.find("\r\n\r\n") + 4);
    CHECK_THAT(first, StartsWith("HTTP/1.1 204") && Contains("\r\nAllow: " + methods + "\r\n") &&
                          !Contains("Content-Length") && !Contains("Access-Control"));
    CHECK_THAT(answers.substr(first.size()), StartsWith("HTTP/1.1 200") && EndsWith("ok\n"));
  }
  CHECK_THAT(options("/nothing"), StartsWith("HTTP/1.1 404"));
  CHECK_THAT(answer_to(test, "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"),
             StartsWith("HTTP/1.1 400") && Contains("Connection: close\r\n"));
}

TEST_CASE("empty lines in front of a request are ignored") {
  TestServer test;
  const std::string get = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
  CHECK(answers_in(answer_to(test, "\r\n" + get + "\r\n\r\n" + post("abc") + "\r\n")) == 2);
  CHECK(answer_to(test, "\r\n\r").empty());
  CHECK_THAT(answer_to(test, "\n" + get), StartsWith("HTTP/1.1 400"));
  CHECK_THAT(answer_to(test, "\r\r\n" + get), StartsWith("HTTP/1.1 400"));
  std::string many;
  while (many.size() < 200) many += "\r\n";
  CHECK_THAT(answer_to(test, many + get), StartsWith("HTTP/1.1 400"));
  TestServer hasty(small_limits(0.3));
  CHECK(answers_in(answer_to(hasty, get + "\r\n", /*closes=*/false)) == 1);  // and no 408 for the empty line
}

TEST_CASE("trailers behind chunks are read and dropped") {
  TestServer test;
  const std::string chunks = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
  CHECK_THAT(answer_to(test, kHead + chunks + "X-Checksum: 1\r\nY:\r\n\r\n"),
             StartsWith("HTTP/1.1 200") && Contains("\r\n\r\n1 3\n"));
  const std::string form = "Content-Type: multipart/form-data; boundary=b\r\nOrigin: https://a.org\r\n\r\n";
  CHECK_THAT(answer_to(test, kHead + chunks + form), StartsWith("HTTP/1.1 200") && Contains("\r\n\r\n1 3\n"));
  CHECK_THAT(answer_to(test, kHead + chunks + "no header\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  std::string many;
  while (many.size() < 70'000) many += "X: " + std::string(1000, 'x') + "\r\n";
  CHECK_THAT(answer_to(test, kHead + chunks + many + "\r\n"), StartsWith("HTTP/1.1 431"));
  CHECK_THAT(
      answer_to(test, kHead + std::string("Transfer-Encoding: chunked\r\n\r\n3 ; a = \"\t\\\"\xFF\" ;b\r\nabc\r\n"
                                          "0;c=d\r\n\r\n")),
      StartsWith("HTTP/1.1 200") && Contains("\r\n\r\n1 3\n"));
}

TEST_CASE("a body whose end is not understood ends the connection") {
  TestServer test;
  for (const char* header : {"Transfer-Encoding: gzip", "Transfer-Encoding: chunked, gzip", "Transfer-Encoding: x",
                             "Transfer-Encoding:", "Content-Length: 0\r\nContent-Length: 0", "Content-Length: 0, 0"}) {
    for (const char* start : {kHead, "GET /healthz HTTP/1.1\r\nHost: a\r\n"}) {
      CAPTURE(header, start);
      const std::string answer =
          answer_to(test, std::string(start) + header + "\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
      CHECK(answers_in(answer) == 1);
      CHECK_THAT(answer, Contains("Connection: close\r\n") && !StartsWith("HTTP/1.1 200"));
    }
  }
}

TEST_CASE("bodies that need more memory than they begin with arrive whole") {
  std::mt19937 random(1);  // the same bytes each time
  for (const size_t size : {65'535, 65'536, 65'537, 131'073, 300'000}) {
    std::string body(size, ' ');
    for (char& c : body) c = static_cast<char>(random());
    std::string chunks = kHead + std::string("Transfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < size; at += 9'999) {
      const std::string chunk = body.substr(at, 9'999);
      chunks += fmt::format("{:x}\r\n", chunk.size()) + chunk + "\r\n";
    }
    chunks += "0\r\n\r\n";
    ServiceMetrics metrics;
    HttpLimits limits = small_limits();
    limits.bytes = 300'000;
    const auto compare = [&body](std::span<const Upload> images, std::string_view) {
      return images[0].bytes == body ? "same" : "other";
    };
    HttpServer server({.page_html = "", .page_css = "", .page_js = "", .model = "", .predict = compare}, limits,
                      metrics);
    for (const std::string& sent : {post(body), chunks}) {
      int sockets[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
      std::thread serving([&] { server.serve_connection(sockets[0]); });
      for (size_t at = 0; at < sent.size(); at += 10'007) {
        const size_t piece = std::min<size_t>(10'007, sent.size() - at);
        CHECK(::send(sockets[1], sent.data() + at, piece, MSG_NOSIGNAL) == static_cast<ssize_t>(piece));
      }
      ::shutdown(sockets[1], SHUT_WR);
      CHECK_THAT(read_all(sockets[1]), StartsWith("HTTP/1.1 200") && EndsWith("\r\n\r\nsame"));
      serving.join();
      ::close(sockets[1]);
    }
  }
}

TEST_CASE("pages of the origins that are allowed may read the answers") {
  const auto ask = [](TestServer& test, const std::string& line, const std::string& headers) {
    return answer_to(test, line + " HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n");
  };
  const std::string preflight =
      "Origin: https://a.org\r\nAccess-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: content-type\r\n";
  const std::string allowed = "\r\nAccess-Control-Allow-Origin: https://a.org\r\n";
  TestServer none;
  CHECK_THAT(ask(none, "GET /model", "Origin: https://a.org\r\n"), !Contains("Access-Control") && !Contains("Vary"));
  CHECK_THAT(ask(none, "OPTIONS /predict", preflight), !Contains("Access-Control"));

  TestServer some(small_limits(), {"http://localhost:3000", "https://a.org"});
  CHECK_THAT(ask(some, "GET /model", "Origin: https://a.org\r\n"),
             Contains(allowed) && Contains("\r\nVary: Origin\r\n") && Contains("Expose-Headers: Retry-After\r\n"));
  CHECK_THAT(ask(some, "OPTIONS /predict", preflight),
             StartsWith("HTTP/1.1 204") && Contains(allowed) && Contains("\r\nVary: Origin\r\n") &&
                 Contains("\r\nAccess-Control-Allow-Methods: POST, OPTIONS\r\n") &&
                 Contains("\r\nAccess-Control-Allow-Headers: Authorization, Content-Type\r\n"));
  for (const char* origin : {"", "Origin: https://b.org\r\n", "Origin: null\r\n", "Origin: https://a.org.b.org\r\n",
                             "Origin: http://a.org\r\n", "Origin: https://a.org:8443\r\n", "Origin: *\r\n",
                             "Origin:\r\n", "Origin: https://a.org\r\nOrigin: https://b.org\r\n"}) {
    CAPTURE(origin);
    CHECK_THAT(ask(some, "GET /model", origin), StartsWith("HTTP/1.1 200") && Contains("\r\nVary: Origin\r\n") &&
                                                    !Contains("Access-Control-Allow-Origin"));
  }
  // Errors, too: the page would otherwise see no reason. An origin is that of one request, and not of the next.
  const std::string from = "Origin: https://a.org\r\n", to = "Origin: https://b.org\r\n";
  for (const std::string& sent :
       {"GET /nothing HTTP/1.1\r\nHost: a\r\n" + from + "\r\n", "GET /predict HTTP/1.1\r\nHost: a\r\n" + from + "\r\n",
        post("refuse", from), post("fail", from), post(std::string(1001, 'x'), from),
        post("abc", from + "Content-Length: 2\r\n"), std::string(kHead) + from + "\r\n",
        "GET /model HTTP/1.1\r\n" + from + "\r\n", "GET /model HTTP/1.1\r\nHost: a\r\n" + from + "no header\r\n\r\n"}) {
    CAPTURE(sent);
    CHECK_THAT(answer_to(some, sent), !StartsWith("HTTP/1.1 200") && Contains(allowed));
  }
  const std::string answers = answer_to(some, post("abc", from) + post("abc", to) + post("abc"));
  CHECK(answers_in(answers) == 3);
  CHECK(answers.find(allowed) == answers.rfind(allowed));

  TestServer all(small_limits(), {"*"});
  for (const std::string& sent : {post("abc", to), post("refuse"), std::string("nonsense\r\n\r\n")}) {
    CHECK_THAT(answer_to(all, sent), Contains("\r\nAccess-Control-Allow-Origin: *\r\n") && !Contains("Vary"));
  }
}

TEST_CASE("origins are those that browsers write") {
  for (const char* origin : {"https://example.org", "http://localhost:3000", "http://127.0.0.1:8000",
                             "http://[::1]:8000", "https://a.org:80", "http://a.org:443", "http://xn--mnchen-3ya.de",
                             "capacitor://localhost", "chrome-extension://abcdefghijklmnop"}) {
    CAPTURE(origin);
    CHECK(is_origin(origin));
  }
  for (const char* origin : {"",
                             "*",
                             "null",
                             "example.org",
                             "//example.org",
                             "://example.org",
                             "http://",
                             "http:///",
                             "https://example.org/",
                             "https://example.org/page",
                             "https://example.org?x",
                             "https://Example.org",
                             "HTTPS://example.org",
                             "https://a.org:443",
                             "http://a.org:80",
                             "http://a.org:",
                             "http://a.org:0",
                             "http://a.org:080",
                             "http://a.org:65536",
                             "http://u@a.org",
                             "http://a.org, http://b.org",
                             "http://a.org http://b.org",
                             "http://a.org\r\nX: y",
                             "http://m\xC3\xBCnchen.de",
                             "http://*.a.org/",
                             "1http://a.org",
                             "file://"}) {
    CAPTURE(origin);
    CHECK(!is_origin(origin));
  }
}

TEST_CASE("headers for ranges and compressed answers are not acted upon") {
  TestServer test;
  const std::string pages =
      "GET /page.css HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\nAccept-Encoding: br, gzip\r\n\r\n";
  CHECK_THAT(answer_to(test, pages),
             StartsWith("HTTP/1.1 200") && !Contains("Content-Encoding") && Contains("\r\n\r\np {}"));
  CHECK_THAT(answer_to(test, post("abc", "RANGE: items=1\r\n")), StartsWith("HTTP/1.1 200"));
  std::string ranges = "bytes=0-0";
  while (ranges.size() < 8000) ranges += ",0-0";
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.1\r\nHost: a\r\nRange: " + ranges + "\r\n\r\n"),
             EndsWith("\r\n\r\nok\n"));
}

TEST_CASE("lines as long as they may be are read as well as short ones") {
  TestServer test;
  const std::string path = "POST /predict?a?b=";
  for (const size_t more : {0, 1, 2, 8000, 8192 - 27, 8192 - 28}) {
    const std::string line = path + std::string(more, 'a') + " HTTP/1.1\r\nHost: a\r\n";
    const std::string query = "a?b=" + std::string(more, 'a');
    CHECK_THAT(answer_to(test, line + "Content-Length: 3\r\n\r\nabc"),
               StartsWith("HTTP/1.1 200") && EndsWith("1 3" + query + "\n"));
  }
  for (const size_t size : {8189, 8190, 8191, 8192}) {
    CHECK_THAT(answer_to(test, post("abc", "X: " + std::string(size - 3, 'x') + "\r\n") +
                                   "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
               StartsWith("HTTP/1.1 200") && Contains("1 3\n") && EndsWith("ok\n"));
  }
}

TEST_CASE("small differences of harmless clients are understood") {
  TestServer test;
  CHECK_THAT(answer_to(test, post("abc", "Expect: 100-Continue\r\n")), StartsWith("HTTP/1.1 100"));
  CHECK(answers_in(answer_to(test, "GET /healthz HTTP/1.0\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n")) == 1);
  CHECK(answers_in(answer_to(test, "GET /nothing HTTP/1.0\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n")) == 1);
  CHECK(answers_in(answer_to(
            test, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: x, CLOSE\r\n\r\n" +
                      post("abc"))) == 1);
  CHECK_THAT(answer_to(test, "HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
             StartsWith("HTTP/1.1 404") && !Contains("error") && EndsWith("ok\n"));
  CHECK_THAT(answer_to(test, "GET /healthz?x=y HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\n\r\n"),
             StartsWith("HTTP/1.1 200"));
  CHECK_THAT(answer_to(test, std::string(kHead) + "transfer-encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n"),
             StartsWith("HTTP/1.1 200"));
  CHECK_THAT(answer_to(test, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", /*closes=*/false),
             EndsWith("ok\n"));
}
