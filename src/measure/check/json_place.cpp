#include "src/measure/check/json_place.h"

#include <fmt/format.h>

#include <fstream>

#include "src/core/error.h"

namespace settrain {

void JsonPlace::fail(const std::string& expected) const {
  const std::string where = pointer_.empty() ? file_ : file_ + ": " + pointer_;
  throw DataError(fmt::format("{}: expected {}, got {:.60}", where, expected, json_->dump()));
}

JsonPlace JsonPlace::operator[](const std::string& key) const {
  if (!has(key)) fail("an object with the key '" + key + "'");
  return {(*json_)[key], file_, pointer_ + "/" + key};
}

std::vector<std::string> JsonPlace::keys() const {
  if (!json_->is_object()) fail("an object");
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_->items()) keys.push_back(key);
  return keys;
}

std::vector<JsonPlace> JsonPlace::elements(int64_t size) const {
  if (!json_->is_array() || (size >= 0 && json_->size() != static_cast<size_t>(size))) {
    fail(size < 0 ? "a list" : fmt::format("a list of {}", size));
  }
  std::vector<JsonPlace> elements;
  for (size_t i = 0; i < json_->size(); ++i) {
    elements.push_back({(*json_)[i], file_, pointer_ + "/" + std::to_string(i)});
  }
  return elements;
}

std::string JsonPlace::text() const {
  if (!json_->is_string()) fail("a text");
  return json_->get<std::string>();
}

bool JsonPlace::boolean() const {
  if (!json_->is_boolean()) fail("true or false");
  return json_->get<bool>();
}

double JsonPlace::real() const {
  if (!json_->is_number()) fail("a number");
  return json_->get<double>();
}

int64_t JsonPlace::integer(int64_t least, int64_t most) const {
  if (!json_->is_number_integer() || json_->get<int64_t>() < least || json_->get<int64_t>() > most) {
    fail(fmt::format("a whole number from {} to {}", least, most));
  }
  return json_->get<int64_t>();
}

nlohmann::json read_json(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw DataError(file.string() + ": cannot be read; expected a JSON file of golden values");
  try {
    return nlohmann::json::parse(stream);
  } catch (const nlohmann::json::parse_error& error) {
    throw DataError(file.string() + ": " + error.what());
  }
}

}  // namespace settrain
