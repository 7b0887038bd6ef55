// The server's side of HTTP: connections, requests, forms, routes. limits.h has the limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/serve/http/limits.h"
#include "src/serve/http/service_metrics.h"

namespace settrain {

/// A photograph in a request.
struct Upload {
  std::string name;        // for messages: the file's name, or "image 2"
  std::string_view bytes;  // the image file, not empty
  std::string field{};     // for errors: the name of its field in a form, or empty
};

/// The images in a body: the body itself; or, of the type multipart/form-data (RFC 7578), one in each part that is a
/// file. A part is one where it has a file name, no field's name, or the type of an image or of bytes. Other parts are
/// skipped, such as a form's text fields; but in a form without any file every part is an image. The bytes lie in
/// `body`. Throws HttpError 400 where the body or a file is empty or the form cannot be read, and 413 where there are
/// more than `most` images.
std::vector<Upload> find_uploads(std::string_view body, std::string_view content_type, int64_t most);

/// Whether it is what the header Host may hold: a host, perhaps none, and perhaps a port (RFC 3986, 3.2.2 and 3.2.3).
bool is_host(std::string_view text);

/// The path, without its query, of a request's target in the origin form ("/model?x") or the absolute form
/// ("http://host:8080/model"); "*" of the asterisk form (RFC 9112, 3.2). Throws HttpError 400 where it has none of
/// them.
std::string_view path_of_target(std::string_view target);

/// The query of such a target, without its question mark; empty where it has none. Nothing in it is decoded.
std::string_view query_of_target(std::string_view target);

/// A part of a query with what its percent codes stand for (RFC 3986, 2.1); a % that begins no code stays.
std::string decoded_part(std::string_view text);

/// Whether it is an origin as browsers write it: "https://example.org", "http://localhost:3000". Small letters, no
/// path, and no port that is the scheme's own.
bool is_origin(std::string_view text);

/// The contents of the server's answers.
struct HttpAnswers {
  std::string_view page_html, page_css, page_js;  // GET / and the files that this page asks for
  std::string model;                              // GET /model: JSON
  // POST /predict?QUERY: JSON. Throws HttpError. Several threads call it at a time.
  std::function<std::string(std::span<const Upload> images, std::string_view query)> predict{};
  // Pages of these origins may read the answers; "*" alone: pages of all origins. See is_origin().
  std::vector<std::string> origins{};
};

/// The address that the server listens at.
class ListeningSocket {
 public:
  /// Binds the address; `port` 0: any free one. Throws Error where that fails. Clients are refused until listen().
  ListeningSocket(const std::string& host, int port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int port() const { return port_; }

  /// Begins to listen. Throws Error where another process listens there already.
  void listen();
  /// Refuses clients from now on.
  void close();
  /// The next connection's socket; -1 where none came within `milliseconds`, or it was lost again. Throws Error where
  /// none can come any more.
  int accept(int milliseconds);

 private:
  std::string address_;
  int socket_ = -1, port_ = 0;
};

/// GET /, /model, /healthz, /metrics and POST /predict; errors are JSON {"error": "..."}. Boost.Beast parses requests;
/// the server refuses in addition what two readers might understand differently: line ends other than CR LF, folded
/// headers, duplicate or conflicting lengths, a missing or duplicate Host, control characters in chunks' extensions.
/// Behind a proxy, one client's bytes could otherwise pass for another's request. A whole request has a deadline, and a
/// limit of bytes. The server writes no files.
class HttpServer {
 public:
  HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
      : answers_(std::move(answers)), limits_(limits), metrics_(metrics) {}

  /// Answers requests to `socket`, which listens, with a thread for each connection, until `stop` returns true; several
  /// threads call it, several times a second and before each answer. Then closes the socket, and returns when the
  /// requests that had begun are answered. All these answers say that their connection closes.
  void run(ListeningSocket& socket, const std::function<bool()>& stop);

  /// Answers the requests of one connection, and closes it. run() calls it for each connection.
  void serve_connection(int socket);

 private:
  class Connection;

  bool is_stopping() const { return stopping_ || (stop_ && stop_()); }

  HttpAnswers answers_;
  HttpLimits limits_;
  ServiceMetrics& metrics_;
  std::function<bool()> stop_{};       // of run()
  std::atomic<bool> stopping_{false};  // run() accepts no connections any more, and no longer needs stop_
  std::atomic<int64_t> connections_{0};
  std::atomic<int64_t> bytes_in_memory_{0};  // of bodies
};

}  // namespace settrain
