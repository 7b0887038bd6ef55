#include "src/config/interpolate.h"

#include <cstdlib>

#include "src/core/text.h"

namespace settrain::config {
namespace {

constexpr size_t kLongest = 64 * 1024;  // bytes; texts that refer to each other twice grow exponentially
constexpr int kDeepestReference = 20;   // defaults within defaults

class Expander {
 public:
  explicit Expander(const Lookup& lookup) : lookup_(lookup) {}

  Expanded expand(std::string_view text, int depth) {
    if (depth > kDeepestReference) throw InvalidValue("${...} are nested too deeply");
    Expanded result{"", false};
    for (size_t i = 0; i < text.size();) {
      const std::string_view rest = text.substr(i);
      if (rest.starts_with("$${")) {
        result.text += "${";
        i += 3;
      } else if (rest.starts_with("${")) {
        const size_t length = reference_length(rest);
        result.text += replace(rest.substr(2, length - 3), depth);
        result.replaced = true;
        i += length;
      } else {
        result.text += text[i++];
      }
      if (result.text.size() > kLongest) throw InvalidValue("gets longer than 64 KiB when its ${...} are filled in");
    }
    return result;
  }

 private:
  // The length of the "${...}" that a text begins with, those inside it included.
  static size_t reference_length(std::string_view text) {
    int open = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i).starts_with("$${")) {
        i += 2;
      } else if (text.substr(i).starts_with("${")) {
        ++open;
        ++i;
      } else if (text[i] == '}' && --open == 0) {
        return i + 1;
      }
    }
    throw InvalidValue("'${' without '}' (a literal '${' is written '$${')");
  }

  std::string replace(std::string_view reference, int depth) {
    constexpr std::string_view kEnvironment = "env:";
    if (!reference.starts_with(kEnvironment)) return lookup_(std::string(reference));
    reference.remove_prefix(kEnvironment.size());
    const size_t dash = reference.find(":-");
    const std::string variable(reference.substr(0, dash));
    const char* value = std::getenv(variable.c_str());
    if (dash != std::string_view::npos && (!value || !*value))
      return expand(reference.substr(dash + 2), depth + 1).text;
    if (!value) throw InvalidValue("the environment variable " + in_quotes(variable) + " is not set");
    if (!is_utf8(value)) throw InvalidValue("the environment variable " + in_quotes(variable) + " is not UTF-8 text");
    return value;
  }

  const Lookup& lookup_;
};

}  // namespace

Expanded expand(std::string_view text, const Lookup& lookup) {
  return Expander(lookup).expand(text, 0);
}

std::string escape_references(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("${")) escaped += '$';
    escaped += text[i];
  }
  return escaped;
}

}  // namespace settrain::config
