#include "src/serve/http/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/core/log.h"
#include "src/serve/http/http_error.h"
#include "src/serve/http/upload.h"

namespace settrain {

// What httplib's handlers do not know of the request that they answer.
struct Router::Exchange {
  Connection& connection;
  std::string text = {}, path = "other";  // its head as it came; its path, where that is known
  RequestHead head = {};
  bool keeps_open = false;    // the connection, for another request
  bool body_is_read = false;  // all of it
  int status = 0;             // of the answer; 0: there was none
};

namespace {

constexpr const char *kJson = "application/json", *kReads = "GET, HEAD", *kPredict = "/predict";
// The page may ask for nothing but its own server, and show what was dropped on it.
constexpr const char* kContentSecurity =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr int64_t kMostChunkHead = 16;  // bytes of a chunk's size and the ends of its lines, as clients send them
constexpr const char* kTooLate = "the request did not arrive in time";

std::string error_json(const std::string& message) {
  const nlohmann::json error{{"error", message}};
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void fill(httplib::Response& response, int status, const std::string& message) {
  response.status = status;
  if (status == 503) response.set_header("Retry-After", "1");
  response.set_content(error_json(message), kJson);
}

// Calls `act`, and `refuse(status, message)` where it throws.
template <class Act, class Refuse>
void or_refuse(const std::string& path, const Act& act, const Refuse& refuse) {
  try {
    act();
  } catch (const HttpError& error) {
    refuse(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    refuse(503, "there is not enough memory at the moment");
  } catch (const std::exception& error) {
    log::error(fmt::format("[serve] {}: {}", path, error.what()));
    refuse(500, "something went wrong here; the server's log says what");
  }
}

const char* reason_of(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    default:
      return "Service Unavailable";
  }
}

// Where httplib has no response to be filled.
void write_error(Connection& connection, int status, const std::string& body, bool keeps_open,
                 const std::string& allowed) {
  const std::string answer = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}{}\r\n{}", status, reason_of(status), kJson,
      body.size(), status == 503 ? "Retry-After: 1\r\n" : "",
      allowed.empty() ? "" : fmt::format("Allow: {}\r\n", allowed), keeps_open ? "" : "Connection: close\r\n", body);
  connection.write(answer.data(), answer.size());
}

}  // namespace

thread_local Router::Exchange* Router::exchange_in_hand = nullptr;

// Bodies together take a bounded part of the memory.
class Router::BodyMemory {
 public:
  BodyMemory(std::atomic<int64_t>& taken, int64_t most) : taken_(taken), most_(most) {}
  ~BodyMemory() { taken_ -= bytes_; }
  BodyMemory(const BodyMemory&) = delete;
  BodyMemory& operator=(const BodyMemory&) = delete;

  void add(int64_t bytes) {
    bytes_ += bytes;
    if (taken_.fetch_add(bytes) + bytes <= most_) return;
    throw HttpError(503, "too many images are being sent at a time");
  }

 private:
  std::atomic<int64_t>& taken_;
  int64_t most_, bytes_ = 0;
};

Router::Router(HttpAnswers answers, const HttpLimits& limits, ServiceMetrics& metrics)
    : answers_(std::move(answers)), limits_(limits), metrics_(metrics) {
  set_keep_alive_timeout(static_cast<time_t>(limits.idle_seconds));  // these two are what answers say of connections
  set_keep_alive_max_count(1'000'000);
  set_payload_max_length(static_cast<size_t>(limits.bytes));
  set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
  set_exception_handler([](const httplib::Request& request, httplib::Response& response, std::exception_ptr problem) {
    or_refuse(
        request.path, [&] { std::rethrow_exception(problem); },
        [&](int status, const std::string& message) { fill(response, status, message); });
  });
  set_error_handler(HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
    if (exchange_in_hand->keeps_open && !exchange_in_hand->body_is_read) {
      exchange_in_hand->keeps_open = false;
      response.set_header("Connection", "close");
    }
    if (response.body.empty()) fill(response, response.status, "the request cannot be read");
    return HandlerResponse::Handled;
  }));
  set_logger(
      [](const httplib::Request&, const httplib::Response& response) { exchange_in_hand->status = response.status; });
  add_routes();
}

void Router::add_text(const std::string& path, std::string_view content, const char* type) {
  methods_[path] = kReads;
  Get(path, [content, type](const httplib::Request&, httplib::Response& response) {
    response.set_header("Content-Security-Policy", kContentSecurity);
    response.set_content(content.data(), content.size(), type);
  });
}

void Router::add_routes() {
  add_text("/", answers_.page_html, "text/html; charset=utf-8");
  add_text("/page.css", answers_.page_css, "text/css; charset=utf-8");
  add_text("/page.js", answers_.page_js, "text/javascript; charset=utf-8");
  add_text("/model", answers_.model, kJson);
  add_text("/healthz", "ok\n", "text/plain; charset=utf-8");
  methods_["/metrics"] = kReads;
  Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics_.text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  methods_[kPredict] = "POST";
  Post(kPredict, [this](const httplib::Request&, httplib::Response& response, const httplib::ContentReader& reader) {
    predict(response, reader);
  });
}

void Router::predict(httplib::Response& response, const httplib::ContentReader& reader) {
  Exchange& exchange = *exchange_in_hand;
  BodyMemory memory(bytes_in_memory_, kBodiesInMemory * limits_.bytes);
  const auto too_large = [this] {
    return HttpError(413, fmt::format("the body is larger than the {} bytes that are taken", limits_.bytes));
  };
  std::string body;
  const bool is_complete = reader([&](const char* bytes, size_t size) {
    const int64_t needed = std::ssize(body) + static_cast<int64_t>(size), room = static_cast<int64_t>(body.capacity());
    if (needed > limits_.bytes) throw too_large();
    if (needed > room) {
      const int64_t wanted = std::max(needed, std::min(2 * room, limits_.bytes));
      memory.add(wanted - room);
      body.reserve(static_cast<size_t>(wanted));
    }
    body.append(bytes, size);
    if (exchange.head.is_chunked) exchange.connection.allow(static_cast<int64_t>(size) + kMostChunkHead);
    return true;
  });
  if (exchange.connection.timed_out()) throw HttpError(408, kTooLate);
  if (exchange.connection.is_too_long()) throw too_large();
  // httplib takes a chunk that is followed by something else for the last one.
  if (!is_complete || (exchange.head.is_chunked && !exchange.connection.ends_with_empty_line())) {
    throw HttpError(400, "the body is cut short, or its chunks cannot be read");
  }
  exchange.body_is_read = true;
  const std::vector<std::string> types = exchange.head.values("content-type");
  const std::string type = types.empty() ? "" : types.front();
  response.set_content(answers_.predict(find_uploads(body, type, limits_.images)), kJson);
}

// Reads the head, and refuses what is not welcome.
void Router::read_request(Exchange& exchange, bool closes) {
  Connection& connection = exchange.connection;
  exchange.text = connection.read_head();
  if (connection.timed_out()) throw HttpError(408, kTooLate);
  if (connection.is_too_long()) {
    const bool is_line = exchange.text.find('\n') == std::string::npos;
    throw HttpError(is_line ? 414 : 431, is_line ? "the address is too long" : "the headers are too long");
  }
  RequestHead& head = exchange.head;
  head = parse_request_head(exchange.text);
  const auto methods = methods_.find(head.path);
  if (methods != methods_.end()) exchange.path = head.path;
  const bool may_keep_open = !closes && !head.closes();
  exchange.keeps_open = may_keep_open && !head.announces_body();  // where it is refused
  check_request(head, methods == methods_.end() ? "" : methods->second, limits_);
  // What is behind a chunked body depends on how chunks are read: nothing is.
  exchange.keeps_open = may_keep_open && !head.is_chunked;
  exchange.body_is_read = !head.is_chunked && head.body_bytes == 0;
}

void Router::answer_request(Connection& connection, bool closes) {
  const auto start = std::chrono::steady_clock::now();
  Exchange exchange{connection};
  exchange_in_hand = &exchange;
  const auto answer = [&] {
    read_request(exchange, closes);
    const RequestHead& head = exchange.head;
    connection.begin_reading(head_for_httplib(head), head.is_chunked ? kLongestHead : head.body_bytes);
    bool ends = false;
    const bool is_written = process_request(connection, !exchange.keeps_open, ends, nullptr);
    exchange.keeps_open &= is_written && !ends;
  };
  const auto refuse_it = [&](int status, const std::string& message) {
    if (exchange.text.empty() && status == 400) return;  // the client has gone
    exchange.status = status;
    const std::string body = exchange.head.method == "HEAD" ? "" : error_json(message);
    write_error(connection, status, body, exchange.keeps_open, status == 405 ? methods_.at(exchange.path) : "");
  };
  or_refuse(exchange.path, answer, refuse_it);
  if (!exchange.keeps_open) connection.close_after_answer();
  exchange_in_hand = nullptr;
  if (exchange.status == 0) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  metrics_.add_answer(exchange.path, exchange.status, seconds.count());
}

void Router::refuse(Connection& connection, int status, const std::string& message) {
  connection.close_after_answer();
  write_error(connection, status, error_json(message), /*keeps_open=*/false, "");
  metrics_.add_answer("other", status, 0);
}

}  // namespace settrain
