// The files of this folder that make the page, and Chart.js, as text: the build writes what defines them.
#pragma once

#include <string_view>

namespace settrain::page_parts {

extern const std::string_view page_html, page_css, page_js, charts_js, answers_js, calibrations_js;
extern const std::string_view chart_js;  // with the notice of its licence, MIT

}  // namespace settrain::page_parts
