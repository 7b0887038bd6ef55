// A filled table in each of the formats that it is written in.
#pragma once

#include <string>

#include "src/papers/table/table_result.h"

namespace settrain {

/// For people and for a terminal: under each row what the paper printed, the difference, and the difference from the
/// column that the table compares with.
std::string table_markdown(const FilledTable& filled);

/// A line a cell: numbers as fractions, or in seconds; empty where there is none.
std::string table_csv(const FilledTable& filled);

/// A tabular a printed table, for the package booktabs.
std::string table_latex(const FilledTable& filled);

/// One page without anything from outside of it, light and dark.
std::string table_html(const FilledTable& filled);

}  // namespace settrain
