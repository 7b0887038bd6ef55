// Hosts, origins, and the targets of requests.
#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <optional>

#include "src/core/text.h"
#include "src/serve/http/http_server.h"

namespace settrain {
namespace {

constexpr std::string_view kDigits = "0123456789", kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", kSmallLetters = "abcdefghijklmnopqrstuvwxyz";

bool has(std::string_view characters, char c) {
  return characters.find(c) != std::string_view::npos;
}

bool is_unreserved(char c) {  // of RFC 3986
  return has(kSmallLetters, c) || has(kCapitals, c) || has(kDigits, c) || has("-._~", c);
}

struct HostAndPort {
  std::string_view host, port;  // port: digits, or empty
};

// Whether it is a name or an IPv4 address, perhaps empty (RFC 3986, reg-name).
bool is_host_name(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_unreserved(c) || has("!$&'()*+,;=", c)) continue;
    const std::string_view code = text.substr(i + 1, 2);
    if (c != '%' || code.size() != 2 || code.find_first_not_of(kHexDigits) != std::string_view::npos) return false;
  }
  return true;
}

// Reads host [":" port] (RFC 3986, 3.2.2 and 3.2.3). A user's name in front of them is refused.
std::optional<HostAndPort> parse_host(std::string_view text) {
  size_t host_end = std::min(text.find(':'), text.size());
  if (text.starts_with('[')) {  // an IPv6 address
    host_end = text.find(']');
    if (host_end == std::string_view::npos) return std::nullopt;
    const std::string_view address = text.substr(1, host_end++ - 1);
    const auto is_of_address = [](char c) { return is_unreserved(c) || has(":%", c); };  // %eth0 is a zone
    if (address.empty() || !std::all_of(address.begin(), address.end(), is_of_address)) return std::nullopt;
  } else if (!is_host_name(text.substr(0, host_end))) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(host_end), port = rest.substr(rest.empty() ? 0 : 1);
  if ((!rest.empty() && rest[0] != ':') || port.find_first_not_of(kDigits) != std::string_view::npos)
    return std::nullopt;
  return HostAndPort{text.substr(0, host_end), port};
}

}  // namespace

bool is_host(std::string_view text) {
  return parse_host(text).has_value();
}

std::string_view path_of_target(std::string_view target) {
  if (target == "*") return target;
  if (!target.starts_with('/')) {
    const size_t scheme_end = target.find("://");
    const std::string scheme(target.substr(0, scheme_end));
    if (scheme_end == std::string_view::npos ||
        !(boost::beast::iequals(scheme, "http") || boost::beast::iequals(scheme, "https"))) {
      throw HttpError(400, "the address is no path, and does not begin with http:// or https://");
    }
    target.remove_prefix(scheme_end + 3);
    const size_t host_end = std::min(target.find_first_of("/?#"), target.size());
    const std::optional<HostAndPort> authority = parse_host(target.substr(0, host_end));
    if (!authority || authority->host.empty()) throw HttpError(400, "the address has no valid host");
    target.remove_prefix(host_end);
  }
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  return path.empty() ? "/" : path;
}

std::string_view query_of_target(std::string_view target) {
  target = target.substr(0, target.find('#'));
  const size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

std::string decoded_part(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string code(text.substr(i + 1, 2));
    const bool is_code = text[i] == '%' && code.size() == 2 && code.find_first_not_of(kHexDigits) == std::string::npos;
    decoded += is_code ? static_cast<char>(std::stoi(code, nullptr, 16)) : text[i];
    if (is_code) i += 2;
  }
  return decoded;
}

bool is_origin(std::string_view text) {
  const size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return false;
  const std::string_view scheme = text.substr(0, scheme_end), rest = text.substr(scheme_end + 3);
  const auto is_of_scheme = [](char c) { return has(kSmallLetters, c) || has(kDigits, c) || has("+-.", c); };
  if (!has(kSmallLetters, scheme[0]) || !std::all_of(scheme.begin(), scheme.end(), is_of_scheme)) return false;
  const std::optional<HostAndPort> authority = parse_host(rest);
  if (!authority || authority->host.empty() || rest.find_first_of(kCapitals) != std::string_view::npos) return false;
  if (authority->host.size() == rest.size()) return true;
  const std::optional<uint16_t> port = parse_number<uint16_t>(authority->port);
  const bool is_default = (scheme == "http" && port == 80) || (scheme == "https" && port == 443);
  return port && *port > 0 && authority->port[0] != '0' && !is_default;
}

}  // namespace settrain
