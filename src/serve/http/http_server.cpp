#include "src/serve/http/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/serve/http/connection.h"
#include "src/serve/http/http_error.h"

namespace settrain {
namespace {

constexpr const char *kJson = "application/json", *kPredict = "/predict";
constexpr std::array kPages{"/", "/page.css", "/page.js", "/model", "/healthz", "/metrics"};
// The page may ask for nothing but its own server, and show what was dropped on it.
constexpr const char* kContentSecurity =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr int kBacklog = 128, kSpareThreads = 8;

thread_local Connection* connection_in_hand = nullptr;  // httplib's handlers see the request alone

std::string error_json(const std::string& message) {
  const nlohmann::json error{{"error", message}};
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void refuse(httplib::Response& response, int status, const std::string& message) {
  response.status = status;
  if (status == 503) response.set_header("Retry-After", "1");
  response.set_content(error_json(message), kJson);
}

void close_after(httplib::Response& response) {
  connection_in_hand->close_after_answer();
  response.set_header("Connection", "close");
}

bool is_page(const std::string& path) {
  return std::find(kPages.begin(), kPages.end(), path) != kPages.end();
}

// Of what httplib refuses by itself.
const char* words_for(int status) {
  switch (status) {
    case 400:
      return "this is no HTTP request that can be read";
    case 408:
      return "the request did not arrive in time";
    case 414:
      return "the address is too long";
    case 431:
      return "the headers are too long";
    default:
      return "the request is refused";
  }
}

std::string too_large(const HttpLimits& limits) {
  return fmt::format("the body is larger than {} bytes, the most that are taken", limits.bytes);
}

}  // namespace

class HttpServer::Listener : public httplib::Server {
 public:
  Listener(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
      : answers_(std::move(answers)), limits_(limits), metrics_(metrics) {
    set_tcp_nodelay(true);
    // httplib's own is SO_REUSEPORT, with which a second server could take the same port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    set_keep_alive_timeout(static_cast<time_t>(limits.idle_seconds));
    set_keep_alive_max_count(1'000'000);
    set_payload_max_length(static_cast<size_t>(limits.bytes));
    new_task_queue = [this] {
      return new httplib::ThreadPool(static_cast<size_t>(limits_.connections + kSpareThreads));
    };
    set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return is_welcome(request, response) ? HandlerResponse::Unhandled : HandlerResponse::Handled;
    });
    set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
      return is_welcome(request, response) ? 100 : response.status;
    });
    set_error_handler(HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
      if (connection_in_hand->timed_out()) response.status = 408;
      if (connection_in_hand->is_too_long() && response.status == 400) response.status = 431;
      if (response.body.empty()) refuse(response, response.status, words_for(response.status));
      return HandlerResponse::Handled;
    }));
    set_exception_handler([](const httplib::Request& request, httplib::Response& response, std::exception_ptr problem) {
      try {
        std::rethrow_exception(problem);
      } catch (const HttpError& error) {
        refuse(response, error.status(), error.what());
      } catch (const std::bad_alloc&) {
        refuse(response, 503, "there is not enough memory at the moment");
      } catch (const std::exception& error) {
        log::error(fmt::format("[serve] {}: {}", request.path, error.what()));
        refuse(response, 500, "something went wrong here; the server's log says what");
      }
    });
    add_routes();
  }

  int bind(const std::string& host, int port) {
    const bool bound = port == 0 ? (port = bind_to_any_port(host)) > 0 : bind_to_port(host, port);
    if (!bound) {
      throw Error(
          fmt::format("cannot listen at {}:{}: is the port taken, or the address not this machine's?", host, port));
    }
    ::listen(svr_sock_, kBacklog);  // httplib asks for 5
    return port;
  }

  void run(const std::function<bool()>& stop) {
    std::thread thread([this] { listen_after_bind(); });
    while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stopping_ = true;
    while (!is_running()) std::this_thread::yield();
    httplib::Server::stop();
    thread.join();
  }

  void serve_connection(int socket) {
    Connection connection(socket, limits_, stopping_);
    connection_in_hand = &connection;
    const bool is_one_too_many = connections_.fetch_add(1) >= limits_.connections;
    metrics_.add_connections(1);
    while (!connection.closes() && connection.wait_for_request()) {
      if (is_one_too_many) {
        connection.close_after_answer();
        answer_raw(connection, 503, "too many connections are open");
        break;
      }
      answer_request(connection);
    }
    metrics_.add_connections(-1);
    --connections_;
    connection_in_hand = nullptr;
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    serve_connection(socket);
    return true;
  }

  void answer_request(Connection& connection) {
    const auto start = std::chrono::steady_clock::now();
    std::string path = "other";
    bool closes = false;
    const auto headers_are_read = [&](httplib::Request& request) {
      if (request.path == kPredict || is_page(request.path)) path = request.path;
      request.ranges.clear();  // answers are short, and parts of them of no use
      // httplib's own reading of forms matches their lines with regular expressions, for which a client may make lines
      // that take minutes.
      connection.content_type = request.get_header_value("Content-Type");
      request.headers.erase("Content-Type");
      connection.expect_body(limits_.bytes + (limits_.bytes >> 2) + 65536);  // of chunks, with their sizes
    };
    status_ = 0;
    const bool goes_on = process_request(connection, stopping_, closes, headers_are_read);
    if (!goes_on || closes || stopping_) connection.close_after_answer();
    if (!connection.has_answered() && connection.timed_out()) answer_raw(connection, 408, words_for(408));
    if (connection.has_answered()) {
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      metrics_.add_answer(path, status_, seconds.count());
    }
  }

  // Where httplib has no response to be filled.
  void answer_raw(Connection& connection, int status, const std::string& message) {
    const std::string body = error_json(message);
    const std::string answer =
        fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}", status,
                    status == 408 ? "Request Timeout" : "Service Unavailable", kJson, body.size(),
                    status == 503 ? "Retry-After: 1\r\n" : "", body);
    connection.write(answer.data(), answer.size());
    status_ = status;
  }

  // Looks at all that can be refused before a body is read; fills the response where it is.
  bool is_welcome(const httplib::Request& request, httplib::Response& response) {
    const size_t lengths = request.get_header_value_count("Content-Length");
    const size_t encodings = request.get_header_value_count("Transfer-Encoding");
    const bool is_predict = request.path == kPredict;
    const auto no = [&](int status, const std::string& message) {
      if (lengths + encodings > 0) close_after(response);  // the body is not read
      refuse(response, status, message);
      return false;
    };
    if (!is_predict && !is_page(request.path)) return no(404, "there is nothing at this address; GET / is the page");
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (is_predict ? request.method != "POST" : !reads) {
      response.set_header("Allow", is_predict ? "POST" : "GET, HEAD");
      return no(405, fmt::format("{} is for {}", request.path, is_predict ? "POST" : "GET"));
    }
    if (!is_predict) return lengths + encodings == 0 || no(400, "a GET request has no body");
    if (lengths + encodings == 0) return no(411, "the request does not say how long its body is");
    if (lengths + encodings > 1) return no(400, "the request says in two ways how long its body is");
    if (encodings == 1 && request.get_header_value("Transfer-Encoding") != "chunked") {
      return no(501, "of transfer encodings, chunked alone is understood");
    }
    const std::string encoding = request.get_header_value("Content-Encoding");
    if (!encoding.empty() && encoding != "identity")
      return no(415, "compressed bodies are not taken: send the image as it is");
    if (lengths == 1) {
      const std::string length = request.get_header_value("Content-Length");
      if (length.empty() || length.find_first_not_of("0123456789") != std::string::npos) {
        return no(400, "Content-Length is no number");
      }
      if (length.size() > 15 || std::stoll(length) > limits_.bytes) return no(413, too_large(limits_));
    }
    return true;
  }

  void add_routes() {
    const auto add = [this](const char* path, std::string_view content, const char* type) {
      Get(path, [content, type](const httplib::Request&, httplib::Response& response) {
        response.set_content(content.data(), content.size(), type);
      });
    };
    Get("/", [this](const httplib::Request&, httplib::Response& response) {
      response.set_header("Content-Security-Policy", kContentSecurity);
      response.set_content(answers_.page_html.data(), answers_.page_html.size(), "text/html; charset=utf-8");
    });
    add("/page.css", answers_.page_css, "text/css; charset=utf-8");
    add("/page.js", answers_.page_js, "text/javascript; charset=utf-8");
    add("/model", answers_.model, kJson);
    add("/healthz", "ok\n", "text/plain; charset=utf-8");
    Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(metrics_.text(), "text/plain; version=0.0.4; charset=utf-8");
    });
    Post(kPredict, [this](const httplib::Request& request, httplib::Response& response,
                          const httplib::ContentReader& reader) { predict(request, response, reader); });
    set_logger([](const httplib::Request&, const httplib::Response& response) { status_ = response.status; });
  }

  void predict(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
    const auto length = request.get_header_value<uint64_t>("Content-Length");
    const MemoryShare share(bytes_in_memory_,
                            request.has_header("Content-Length") ? static_cast<int64_t>(length) : limits_.bytes,
                            kBodiesInMemory * limits_.bytes);
    std::string body;
    body.reserve(length);
    bool is_too_large = false;
    const bool complete = reader([&](const char* bytes, size_t size) {
      is_too_large = body.size() + size > static_cast<size_t>(limits_.bytes);
      if (!is_too_large) body.append(bytes, size);
      return !is_too_large;
    });
    if (!complete) {
      close_after(response);
      if (connection_in_hand->timed_out()) throw HttpError(408, words_for(408));
      if (is_too_large || connection_in_hand->is_too_long()) throw HttpError(413, too_large(limits_));
      throw HttpError(400, "the body is cut short, or its chunks cannot be read");
    }
    response.set_content(answers_.predict(find_uploads(body, connection_in_hand->content_type, limits_.images)), kJson);
    response.status = 200;  // httplib sets that of a failed read and forgets it
  }

  // Bodies together take a bounded part of the memory.
  class MemoryShare {
   public:
    MemoryShare(std::atomic<int64_t>& taken, int64_t bytes, int64_t most) : taken_(taken), bytes_(bytes) {
      if (taken_.fetch_add(bytes_) + bytes_ <= most) return;
      taken_ -= bytes_;
      connection_in_hand->close_after_answer();
      throw HttpError(503, "too many images are being sent at a time");
    }
    ~MemoryShare() { taken_ -= bytes_; }
    MemoryShare(const MemoryShare&) = delete;
    MemoryShare& operator=(const MemoryShare&) = delete;

   private:
    std::atomic<int64_t>& taken_;
    int64_t bytes_;
  };

  HttpAnswers answers_;
  HttpLimits limits_;
  ServiceMetrics& metrics_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> connections_{0}, bytes_in_memory_{0};
  static thread_local int status_;  // of the answer that the thread gave last
};

thread_local int HttpServer::Listener::status_ = 0;

HttpServer::HttpServer(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
    : listener_(std::make_unique<Listener>(std::move(answers), limits, metrics)) {}

HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string& host, int port) {
  return listener_->bind(host, port);
}

void HttpServer::run(const std::function<bool()>& stop) {
  listener_->run(stop);
}

void HttpServer::serve_connection(int socket) {
  listener_->serve_connection(socket);
}

}  // namespace settrain
