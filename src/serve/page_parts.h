// The files of this folder that make the page, as text: the build writes what defines them.
#pragma once

#include <string_view>

namespace settrain::serve_parts {

extern const std::string_view page_html, page_css, page_js;

}  // namespace settrain::serve_parts
