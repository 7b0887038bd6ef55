#include "src/serve/http/http_server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <future>
#include <limits>
#include <list>
#include <new>
#include <nlohmann/json.hpp>

#include "src/core/log.h"

namespace settrain {
namespace {

namespace http = boost::beast::http;
using boost::beast::iequals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Parser = http::request_parser<http::buffer_body>;

constexpr milliseconds kLooksForStop{100};
constexpr milliseconds kArrivesAtStop{5000};  // for requests that are on their way when the server stops
constexpr milliseconds kLongestLinger{1000};
// Connections beyond the limit that get a 503 at a time. Further ones are closed without an answer.
constexpr size_t kMostRefusals = 16;
constexpr size_t kLongestLine = 8192;   // bytes of a request's first line, and of each of its headers
constexpr size_t kLongestHead = 65536;  // bytes of all of them together
constexpr size_t kFirstBytes = 65536;   // the memory that a body begins with
constexpr int kMostEmptyLines = 8;      // in front of a request; some old clients send one behind a body
constexpr const char *kJson = "application/json", *kPredict = "/predict", *kAllMethods = "GET, HEAD, POST, OPTIONS";
// The page may ask for nothing but its own server, and show what was dropped on it.
constexpr const char* kHardening =
    "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Whether the socket becomes ready for `events` before `until`, and within kLooksForStop.
bool is_ready(int socket, short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  pollfd waited{socket, events, 0};
  return ::poll(&waited, 1, static_cast<int>(std::clamp(left, milliseconds(0), kLooksForStop).count())) > 0;
}

// The class of Boost's string views differs between its versions.
template <class Text>
std::string_view view(const Text& text) {
  return {text.data(), text.size()};
}

struct Answer {
  int status = 200;
  std::string type = kJson, content = {}, headers = {};  // headers: further ones, each with its CR LF
};

Answer refusal(int status, const std::string& message, const std::string& headers = "", const std::string& field = "") {
  nlohmann::json error{{"error", message}};
  if (!field.empty()) error["field"] = field;
  return {.status = status,
          .content = error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n',
          .headers = status == 503 ? "Retry-After: 1\r\n" : headers};
}

// A body's share of the memory for all bodies.
struct BodyMemory {
  std::atomic<int64_t>& taken;
  int64_t most, bytes = 0;

  BodyMemory(std::atomic<int64_t>& taken, int64_t most) : taken(taken), most(most) {}
  ~BodyMemory() { taken -= bytes; }
  BodyMemory(const BodyMemory&) = delete;
  BodyMemory& operator=(const BodyMemory&) = delete;
  void add(size_t more) {
    bytes += static_cast<int64_t>(more);
    if ((taken += static_cast<int64_t>(more)) > most) throw HttpError(503, "too many images are being sent at a time");
  }
};

}  // namespace

// One client's connection. A thread blocks in it, but never beyond a request's deadline.
class HttpServer::Connection {
 public:
  Connection(HttpServer& server, int socket) : server_(server), limits_(server.limits_), socket_(socket) {}
  // Closing a socket with unread bytes resets the connection, and the client may never see the answer.
  ~Connection() {
    if (lingers_) {
      ::shutdown(socket_, SHUT_WR);
      const auto until = Clock::now() + kLongestLinger;
      while (Clock::now() < until) {
        if (is_ready(socket_, POLLIN, until) && ::recv(socket_, buffer_.data(), buffer_.size(), 0) <= 0) break;
      }
    }
    ::close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits for a request's first byte, from which its deadline counts. False where no request comes any more. Skips
  // empty lines in front of it (RFC 9112, 2.2).
  bool wait_for_request() {
    const auto idle_end = after(limits_.idle_seconds);
    for (int empty_lines = 0; empty_lines < kMostEmptyLines;) {
      const std::string_view received(buffer_.data() + begin_, end_ - begin_);
      if (received.starts_with("\r\n")) {
        begin_ += 2;
        ++empty_lines;
        continue;
      }
      if (!received.empty() && received != "\r") break;
      // A client that was told to keep the connection may send its next request as the server stops. So the wait that
      // ends idle connections begins after the signal.
      const bool stops = server_.is_stopping();
      if (is_ready(socket_, POLLIN, idle_end)) {
        if (!fill_buffer()) return false;
      } else if (stops || Clock::now() >= idle_end) {
        return false;
      }
    }
    deadline_ = after(limits_.seconds);
    return true;
  }

  // False where the connection is to be closed.
  bool answer_request() {
    const auto start = Clock::now();
    may_go_on_ = false;
    origin_.clear();
    Parser parser;
    std::string path = "other";
    Answer answer;
    try {
      answer = answer_to(parser, path);
    } catch (const HttpError& error) {
      answer = refusal(error.status(), error.what(), "", error.field());
    } catch (const std::bad_alloc&) {
      answer = refusal(503, "there is not enough memory at the moment");
    } catch (const std::exception& error) {
      log::error(fmt::format("[serve] {}: {}", path, error.what()));
      answer = refusal(500, "something went wrong here; the server's log says what");
    }
    // Asks the signal itself, at the last moment. A client that is told to keep the connection would lose its next
    // request.
    const bool closes = !may_go_on_ || !parser.is_done() || server_.is_stopping();
    const bool is_sent = send(answer, closes, parser.get().method() == http::verb::head);
    server_.metrics_.add_answer(path, answer.status, std::chrono::duration<double>(Clock::now() - start).count());
    return is_sent && !closes;
  }

  // Sends an answer. False where the client is gone.
  bool send(const Answer& answer, bool closes, bool is_head = false) {
    lingers_ = closes;
    std::string text = fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", answer.status,
                                   view(http::obsolete_reason(static_cast<http::status>(answer.status))),
                                   fmt::gmtime(std::time(nullptr)));
    if (answer.status != 204) {  // an answer without content has no length either (RFC 9110, 8.6)
      text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", answer.type, answer.content.size());
    }
    text += answer.headers + kHardening + cross_origin_headers() + (closes ? "Connection: close\r\n" : "") + "\r\n";
    if (!is_head) text += answer.content;
    return send_bytes(text);
  }

 private:
  // Sets `path` to the path of the request where the server has something at it.
  Answer answer_to(Parser& parser, std::string& path) {
    parse_head(parser);
    struct Page {
      std::string_view path, methods;
      const char* type;
      std::string_view text;
    };
    constexpr std::string_view kReading = "GET, HEAD, OPTIONS";
    const HttpAnswers& answers = server_.answers_;
    const std::array<Page, 7> pages{{{"/", kReading, "text/html; charset=utf-8", answers.page_html},
                                     {"/page.css", kReading, "text/css; charset=utf-8", answers.page_css},
                                     {"/page.js", kReading, "text/javascript; charset=utf-8", answers.page_js},
                                     {"/model", kReading, kJson, answers.model},
                                     {"/healthz", kReading, "text/plain; charset=utf-8", "ok\n"},
                                     {"/metrics", kReading, "text/plain; version=0.0.4; charset=utf-8", ""},
                                     {kPredict, "POST, OPTIONS", kJson, ""}}};
    const http::verb method = parser.get().method();
    if (method == http::verb::connect) {
      may_go_on_ = false;  // what comes next may be for the tunnel
      return refusal(405, "this server is no proxy", fmt::format("Allow: {}\r\n", kAllMethods));
    }
    const std::string_view asked = path_of_target(view(parser.get().target()));
    const bool asks_for_options = method == http::verb::options;
    if (asked == "*") {
      if (!asks_for_options) throw HttpError(400, "only OPTIONS has the address *");
      return options_answer(parser, kAllMethods);
    }
    const Page* page = std::find_if(pages.begin(), pages.end(), [&](const Page& known) { return known.path == asked; });
    if (page == pages.end()) throw HttpError(404, "there is nothing at this address; GET / is the page");
    path = asked;
    if (asks_for_options) return options_answer(parser, page->methods);
    const bool reads = method == http::verb::get || method == http::verb::head;
    if (path == kPredict ? method != http::verb::post : !reads) {
      return refusal(405, fmt::format("{} takes {}", path, page->methods), fmt::format("Allow: {}\r\n", page->methods));
    }
    if (path == kPredict) return predict(parser);
    if (!parser.is_done()) throw HttpError(400, "a GET request has no body");
    return {.type = page->type, .content = path == "/metrics" ? server_.metrics_.text() : std::string(page->text)};
  }

  // The methods that an address takes. Browsers ask before they send an image from a page of another origin.
  Answer options_answer(const Parser& parser, std::string_view methods) const {
    if (!parser.is_done()) throw HttpError(400, "an OPTIONS request has no body");
    std::string headers = fmt::format("Allow: {}\r\n", methods);
    if (!server_.answers_.origins.empty()) {
      headers += fmt::format(
          "Access-Control-Allow-Methods: {}\r\nAccess-Control-Allow-Headers: Authorization, Content-Type\r\n"
          "Access-Control-Max-Age: 600\r\n",
          methods);
    }
    return {.status = 204, .headers = headers};
  }

  // Whether pages of the request's origin may read the answer (https://fetch.spec.whatwg.org/#http-cors-protocol). What
  // the client sent is never repeated.
  std::string cross_origin_headers() const {
    const std::vector<std::string>& origins = server_.answers_.origins;
    if (origins.empty()) return "";
    const bool all = origins.front() == "*";
    const auto allowed = all ? origins.begin() : std::find(origins.begin(), origins.end(), origin_);
    const std::string vary = all ? "" : "Vary: Origin\r\n";
    if (allowed == origins.end()) return vary;
    return vary +
           fmt::format("Access-Control-Allow-Origin: {}\r\nAccess-Control-Expose-Headers: Retry-After\r\n", *allowed);
  }

  // Parses the head of a request. Refuses a head that two readers might understand differently, also where Beast
  // accepts it.
  void parse_head(Parser& parser) {
    const std::string_view head = receive_head();
    boost::beast::error_code problem;
    parser.header_limit(kLongestHead);
    parser.body_limit(std::numeric_limits<uint64_t>::max());  // predict() says more about one that is too large
    const size_t parsed = parser.put(boost::asio::const_buffer(head.data(), head.size()), problem);
    const auto& request = parser.get();
    if (request.count(http::field::origin) == 1) origin_ = view(request[http::field::origin]);
    if (problem == http::error::bad_content_length) {  // the error for numbers beyond 64 bits, too
      const std::string_view digits = "0123456789", rest = head.substr(parsed);
      const std::string_view line = rest.substr(0, rest.find('\r'));
      const size_t number = std::min(line.find_first_of(digits), line.size());
      if (std::min(line.find_first_not_of(digits, number), line.size()) - number >= 20) throw limits_.body_too_large();
    }
    if (problem) throw HttpError(400, "this is no HTTP request: " + problem.message());

    const auto encoding = request[http::field::transfer_encoding], length = request[http::field::content_length];
    if (request.count(http::field::transfer_encoding) + request.count(http::field::content_length) > 1)
      throw HttpError(400, "duplicate or conflicting Content-Length and Transfer-Encoding");
    if (view(length).find(',') != std::string_view::npos) throw HttpError(400, "Content-Length is no number");
    if (request.count(http::field::transfer_encoding) > 0 && !iequals(encoding, "chunked"))
      throw HttpError(501, "the only transfer encoding that is taken is chunked");
    const size_t hosts = request.count(http::field::host);
    if (hosts > 1) throw HttpError(400, "duplicate Host");
    if (hosts == 0 && request.version() == 11) throw HttpError(400, "Host is missing");
    if (!is_host(view(request[http::field::host]))) throw HttpError(400, "Host is not a valid host");
    // Readers of chunks differ most, so no request is read behind them.
    may_go_on_ = request.version() == 11 && parser.keep_alive() && !parser.chunked();
  }

  // Receives a request up to and with the empty line. Throws where a line ends or begins wrongly or is too long.
  std::string_view receive_head() {
    size_t size = 0, line = 0;  // bytes that were looked at; where the last line among them begins
    for (bool ends = false; !ends; ++size) {
      if (begin_ + size == end_) receive();
      const char c = buffer_[begin_ + size];
      if (size == line && line > 0 && (c == ' ' || c == '\t')) throw HttpError(400, "a header has more than one line");
      if (c != '\n') {
        if (size - line <= kLongestLine) continue;
        throw line == 0 ? HttpError(414, "the address is too long") : HttpError(431, "a header is too long");
      }
      if (size == line || buffer_[begin_ + size - 1] != '\r') throw HttpError(400, "a line does not end with CR LF");
      ends = size == line + 1;
      line = size + 1;
    }
    begin_ += size;
    return {buffer_.data() + begin_ - size, size};
  }

  Answer predict(Parser& parser) {
    const auto& request = parser.get();
    if (!parser.content_length() && !parser.chunked()) {
      may_go_on_ = false;  // a body may follow all the same
      throw HttpError(411, "Content-Length is missing");
    }
    const auto codings = request.equal_range(http::field::content_encoding);
    if (std::any_of(codings.first, codings.second,
                    [](const auto& coding) { return !iequals(coding.value(), "identity"); }))
      throw HttpError(415, "compressed bodies are not taken: send the image as it is");
    if (parser.content_length().value_or(0) > static_cast<uint64_t>(limits_.bytes)) throw limits_.body_too_large();
    if (request.version() == 11 && iequals(request[http::field::expect], "100-continue"))
      send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
    const std::string query(query_of_target(view(request.target())));
    const std::string type(view(request[http::field::content_type]));  // trailers are among the headers after the body
    BodyMemory memory(server_.bytes_in_memory_, limits_.bytes_of_all_bodies());
    const std::string body = read_body(parser, memory);
    return {.content = server_.answers_.predict(find_uploads(body, type, limits_.images), query)};
  }

  // Memory grows with the bytes that arrive, not with the announced length. Trailers behind chunks are read, and
  // nothing asks for them; all of them and the last chunk's line fit into buffer_, or are refused.
  std::string read_body(Parser& parser, BodyMemory& memory) {
    // Beast takes any byte in a quoted value. Other readers end the line at a bare LF, and take what follows for the
    // next chunk.
    auto check_extensions = [](uint64_t, auto extensions, boost::beast::error_code& problem) {
      const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7F; };
      if (std::any_of(extensions.begin(), extensions.end(), is_control)) problem = http::error::bad_chunk_extension;
    };
    parser.on_chunk_header(check_extensions);
    const size_t most = parser.content_length().value_or(limits_.bytes);
    parser.body_limit(limits_.bytes);
    parser.eager(true);
    std::string body;
    auto& room = parser.get().body();
    while (!parser.is_done()) {
      if (room.size == 0) {
        const size_t filled = body.size(), wanted = std::min(most, std::max(2 * filled, kFirstBytes));
        memory.add(wanted - filled);
        body.resize(wanted);
        room.data = body.data() + filled;
        room.size = wanted - filled;
      }
      if (begin_ == end_) receive();
      boost::beast::error_code problem;
      begin_ += parser.put(boost::asio::const_buffer(buffer_.data() + begin_, end_ - begin_), problem);
      if (problem == http::error::need_more) {
        receive();
      } else if (problem == http::error::body_limit) {
        throw limits_.body_too_large();
      } else if (problem && problem != http::error::need_buffer) {
        throw HttpError(400, "the body cannot be read: " + problem.message());
      }
    }
    body.resize(body.size() - room.size);
    return body;
  }

  // Waits for more of the request.
  void receive() {
    if (end_ - begin_ == buffer_.size()) throw HttpError(431, "the headers, or a chunk's, are too long");
    do {
      if (server_.is_stopping()) deadline_ = std::min(deadline_, Clock::now() + kArrivesAtStop);
      if (Clock::now() >= deadline_) throw HttpError(408, "the request did not arrive in time");
    } while (!is_ready(socket_, POLLIN, deadline_));
    if (!fill_buffer()) throw HttpError(400, "the request is cut short");
  }

  // Appends received bytes to those that are not parsed yet. False where the client is gone.
  bool fill_buffer() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    const ssize_t received = ::recv(socket_, buffer_.data() + end_, buffer_.size() - end_, 0);
    end_ += static_cast<size_t>(std::max<ssize_t>(received, 0));
    return received > 0;
  }

  bool send_bytes(std::string_view bytes) const {
    for (const auto until = after(limits_.seconds); !bytes.empty();) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if ((errno != EAGAIN && errno != EINTR) || Clock::now() >= until) {
        return false;
      } else {
        is_ready(socket_, POLLOUT, until);
      }
    }
    return true;
  }

  HttpServer& server_;
  const HttpLimits& limits_;
  int socket_;
  Clock::time_point deadline_{};
  std::string origin_{};  // of the page that sent the request; empty where it is not known
  bool may_go_on_ = false, lingers_ = false;
  size_t begin_ = 0, end_ = 0;             // the bytes in buffer_ that are not parsed yet
  std::array<char, kLongestHead> buffer_;  // not cleared, since most connections need little of it
};

void HttpServer::serve_connection(int socket) {
  metrics_.add_connections(1);
  const bool is_one_too_many = ++connections_ > limits_.connections;
  if (is_one_too_many) --connections_;  // it takes nobody's place
  try {
    Connection connection(*this, socket);
    if (is_one_too_many) {
      connection.send(refusal(503, "too many connections are open"), /*closes=*/true);
      metrics_.add_answer("other", 503, 0);
    } else {
      while (connection.wait_for_request() && connection.answer_request()) {
      }
    }
  } catch (...) {
    // There was not even the memory for a refusal, so nothing can be sent.
  }
  if (!is_one_too_many) --connections_;
  metrics_.add_connections(-1);
}

void HttpServer::run(ListeningSocket& listening, const std::function<bool()>& stop) {
  stop_ = stop;
  // One thread for each connection. The list is destroyed after `at_the_end`, so the threads know that they stop before
  // it waits for them.
  std::list<std::future<void>> threads;
  const struct AtTheEnd {
    std::atomic<bool>& stopping;
    ~AtTheEnd() { stopping = true; }
  } at_the_end{stopping_};
  while (!stop()) {
    const int socket = listening.accept(static_cast<int>(kLooksForStop.count()));
    threads.remove_if([](const auto& thread) {
      return !thread.valid() || thread.wait_for(milliseconds(0)) == std::future_status::ready;
    });
    if (socket < 0) continue;
    try {
      if (threads.size() < static_cast<size_t>(limits_.connections) + kMostRefusals) {
        threads.emplace_back() = std::async(std::launch::async, [this, socket] { serve_connection(socket); });
        continue;
      }
    } catch (const std::exception& error) {
      log::warning(fmt::format("[serve] a connection cannot be taken: {}", error.what()));
    }
    ::close(socket);
  }
  listening.close();
}

}  // namespace settrain
