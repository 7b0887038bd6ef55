// Text for pages of HTML.
#pragma once

#include <string>
#include <string_view>

namespace settrain {

/// `text` with &, <, >, " and ' as HTML's character references: what an element or a quoted attribute may hold.
std::string escape_html(std::string_view text);

}  // namespace settrain
