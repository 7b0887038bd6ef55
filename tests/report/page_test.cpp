#include <nlohmann/json.hpp>
#include <regex>

#include "src/report/report.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

const std::string kHostile = "</script><script>alert(\"1\")</script><!-- & ' {{css}} \xC3\xA9";

// The text between the tags of the data.
std::string data_of(const std::string& page) {
  const std::string open = "<script id=\"data\" type=\"application/json\">";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("JSON in a script cannot end it, and reads back to the same") {
  const ordered_json data{{kHostile, {kHostile, 1.5, nullptr}}};
  const std::string json = script_json(data);
  CHECK(json.find('<') == std::string::npos);
  CHECK(ordered_json::parse(json) == data);
  // A path may hold bytes that are no UTF-8.
  CHECK(ordered_json::parse(script_json({{"path", "a\xFF"}}))["path"] == "a\xEF\xBF\xBD");
}

TEST_CASE("a page has as many scripts whatever the names say") {
  const std::string plain = report_page("run", {{"title", "run"}});
  const std::string hostile = report_page(kHostile, {{"title", kHostile}});
  CHECK(hostile.starts_with(kReportMarker));
  CHECK(count(hostile, "<script") == count(plain, "<script"));
  CHECK(count(hostile, "</script>") == count(plain, "</script>"));
  CHECK(ordered_json::parse(data_of(hostile))["title"] == kHostile);
  // Replaced text is not searched for placeholders again.
  CHECK(count(hostile, "{{css}}") == 2);
  CHECK(hostile.find("<title>&lt;/script&gt;") != std::string::npos);
}

TEST_CASE("a page asks for nothing from elsewhere, and has Chart.js with its licence") {
  const std::string page = report_page("run", {{"title", "run"}});
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK_FALSE(std::regex_search(page, std::regex("(src|href) *= *[\"']?https?:")));
  CHECK_FALSE(std::regex_search(page, std::regex("url\\( *[\"']?https?:")));
  CHECK(page.find("<link") == std::string::npos);
  CHECK(page.find(page_parts::chart_js) != std::string::npos);
  CHECK(page.find("Released under the MIT License") != std::string::npos);
  CHECK(page.find("The above copyright notice and this permission notice shall be included") != std::string::npos);
}

}  // namespace
}  // namespace settrain
