// A filled table in each of the formats that it is written in.
#pragma once

#include <string>

#include "src/papers/table/filled_table.h"

namespace settrain {

/// For people and for a terminal: under each row the printed numbers, the difference from ours, and the difference
/// from the column that the table compares with.
std::string table_markdown(const FilledTable& filled);

/// A line for each cell: numbers as fractions, or in seconds; empty where there is none.
std::string table_csv(const FilledTable& filled);

/// A tabular for each printed table, for the package booktabs.
std::string table_latex(const FilledTable& filled);

/// One page, light and dark, that needs nothing from elsewhere.
std::string table_html(const FilledTable& filled);

}  // namespace settrain
