// One HTML file that holds a report, and asks for nothing from elsewhere.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace settrain {

/// What every report begins with.
inline constexpr std::string_view kReportMarker = "<!doctype html>\n<!-- settrain report -->\n";

/// JSON that may stand in a <script> element: without "<", so that no text in it ends the element or begins a comment.
/// Bytes that are no UTF-8 become U+FFFD.
std::string script_json(const nlohmann::ordered_json& data);

/// The page: `data` as report_data() makes it, and what draws it. `title` is plain text.
std::string report_page(std::string_view title, const nlohmann::ordered_json& data);

}  // namespace settrain
