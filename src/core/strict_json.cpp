#include "src/core/strict_json.h"

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>
#include <vector>

namespace settrain {
namespace {

using Json = nlohmann::json;

// Checks the text in one pass before it becomes a tree. The library's parser callbacks would walk all members of an
// object again each time that one of them ends.
class Checker : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(size_t max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
    if (names_.back().insert(name).second) return true;
    constexpr size_t kLongest = 120;
    const std::string shown = Json(name).dump(-1, ' ', true, Json::error_handler_t::replace);
    throw std::invalid_argument(
        fmt::format("has {} twice", shown.size() <= kLongest ? shown : shown.substr(0, kLongest) + "...\""));
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw std::invalid_argument(fmt::format("is not valid JSON from byte {} on", position));
  }

 private:
  bool enter() {
    if (names_.size() == max_depth_)
      throw std::invalid_argument(fmt::format("is nested more than {} deep", max_depth_));
    names_.emplace_back();
    return true;
  }
  bool leave() {
    names_.pop_back();
    return true;
  }

  size_t max_depth_;
  std::vector<std::unordered_set<std::string>> names_;  // of what is open; arrays have none
};

}  // namespace

Json parse_strict_json(std::string_view text, size_t max_depth) {
  Checker checker(max_depth);
  Json::sax_parse(text, &checker);
  return Json::parse(text);
}

}  // namespace settrain
