// A number as a paper prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace settrain {

/// What stands in a cell of a printed table: "94.2", "94.2±0.1", "36.3±0.3 (12.6/42.9/71.7)", "NA", or "-" where the
/// paper has no such cell. Numbers as they are printed.
struct PrintedCell {
  std::string text = "-";
  std::optional<double> value{}, spread{};  // before and after the ±
  std::vector<double> groups{};             // in parentheses

  /// Whether the paper has no such cell.
  bool is_absent() const { return text == "-"; }
};

/// Reads such a text; nothing where it is none.
std::optional<PrintedCell> parse_printed(const std::string& text);

}  // namespace settrain
