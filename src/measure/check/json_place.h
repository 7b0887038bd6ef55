// A value of a JSON file that knows where it is, so that every complaint names the file and the place in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace settrain {

class JsonPlace {
 public:
  /// The root of a file. `json` must outlive the place.
  JsonPlace(const nlohmann::json& json, const std::filesystem::path& file) : JsonPlace(json, file.string(), "") {}

  /// Throws DataError: "FILE: /cases/3/scores: expected ..., got ...".
  [[noreturn]] void fail(const std::string& expected) const;

  bool has(const std::string& key) const { return json_->is_object() && json_->contains(key); }
  bool is_null() const { return json_->is_null(); }
  JsonPlace operator[](const std::string& key) const;
  /// The keys of an object.
  std::vector<std::string> keys() const;
  /// The elements of a list; `size` of them unless it is negative.
  std::vector<JsonPlace> elements(int64_t size = -1) const;

  std::string text() const;
  bool boolean() const;
  double real() const;
  int64_t integer(int64_t least, int64_t most) const;
  /// The value as JSON text.
  std::string dump() const { return json_->dump(); }

 private:
  JsonPlace(const nlohmann::json& json, std::string file, std::string pointer)
      : json_(&json), file_(std::move(file)), pointer_(std::move(pointer)) {}

  const nlohmann::json* json_;
  std::string file_;
  std::string pointer_;  // "/cases/3/scores"; empty at the root
};

/// Parses a file. Throws DataError naming it where it is missing or is not JSON.
nlohmann::json read_json(const std::filesystem::path& file);

}  // namespace settrain
