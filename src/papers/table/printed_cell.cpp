#include "src/papers/table/printed_cell.h"

#include <cmath>
#include <cstdlib>

namespace settrain {
namespace {

// Takes a number from the front of `rest`, and the blanks behind it.
std::optional<double> take_number(std::string_view& rest) {
  const std::string text(rest);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - text.c_str()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return value;
}

bool take(std::string_view& rest, std::string_view word) {
  if (!rest.starts_with(word)) return false;
  rest.remove_prefix(word.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<PrintedCell> parse_printed(const std::string& text) {
  PrintedCell cell{text};
  // Words of stability tables stand for no number.
  for (const char* word : {"-", "NA", "stable", "overflow"}) {
    if (text == word) return cell;
  }
  std::string_view rest = text;
  if (!(cell.value = take_number(rest))) return std::nullopt;
  if (take(rest, "±") && !(cell.spread = take_number(rest))) return std::nullopt;
  if (take(rest, "(")) {
    do {
      const auto group = take_number(rest);
      if (!group) return std::nullopt;
      cell.groups.push_back(*group);
    } while (take(rest, "/"));
    if (!take(rest, ")")) return std::nullopt;
  }
  return rest.empty() ? std::optional(cell) : std::nullopt;
}

}  // namespace settrain
