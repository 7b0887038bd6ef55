#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/core/text.h"
#include "src/report/report.h"

namespace settrain {

std::string script_json(const nlohmann::ordered_json& data) {
  const std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(json.size());
  // "<" stands in texts alone, where JSON has an escape for it.
  for (const char& c : json) escaped += c == '<' ? std::string_view("\\u003c") : std::string_view(&c, 1);
  return escaped;
}

std::string report_page(std::string_view title, const nlohmann::ordered_json& data) {
  const std::string escaped_title = escape_html(title), json = script_json(data);
  const std::map<std::string_view, std::string_view> parts{{"title", escaped_title},
                                                           {"data", json},
                                                           {"css", page_parts::page_css},
                                                           {"chart_js", page_parts::chart_js},
                                                           {"charts", page_parts::charts_js},
                                                           {"answers", page_parts::answers_js},
                                                           {"calibrations", page_parts::calibrations_js},
                                                           {"page", page_parts::page_js}};
  std::string page(kReportMarker);
  // In one pass: texts that are filled in are not searched again.
  std::string_view rest = page_parts::page_html;
  for (size_t begin; (begin = rest.find("{{")) != std::string_view::npos;) {
    const size_t end = rest.find("}}", begin);
    if (end == std::string_view::npos) throw std::logic_error("page.html: a {{ without }}");
    page += rest.substr(0, begin);
    page += parts.at(rest.substr(begin + 2, end - begin - 2));
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace settrain
