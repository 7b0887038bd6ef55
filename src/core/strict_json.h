// Strict parsing of untrusted JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace settrain {

/// Parses `text`, in time and memory proportional to it. Throws std::invalid_argument that says what is wrong, in plain
/// characters: no JSON (with the byte), nested deeper than `max_depth` levels, a name that comes twice in one object.
nlohmann::json parse_strict_json(std::string_view text, size_t max_depth);

}  // namespace settrain
