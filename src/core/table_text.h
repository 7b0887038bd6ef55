// Cells and rows of tables, as text.
#pragma once

#include <string>
#include <vector>

namespace settrain {

/// The cell of a CSV file (RFC 4180), in quotes where it needs them.
std::string csv_cell(const std::string& text);

/// The cells with commas between them, and a newline.
std::string csv_row(const std::vector<std::string>& cells);

/// A table in Markdown, its columns padded to their widest cell, so that it also reads well as it is. Bars in cells are
/// escaped, newlines become blanks.
std::string markdown_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

/// The lines of `text`, each broken at blanks so that it has at most `columns` characters, but for words that are
/// longer by themselves. All but the very first begin with `indent` blanks.
std::string wrap_words(const std::string& text, size_t columns, size_t indent);

}  // namespace settrain
