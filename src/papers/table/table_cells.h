// A filled table as texts, which every format arranges in its own way.
#pragma once

#include <string>
#include <vector>

#include "src/papers/table/table_result.h"

namespace settrain {

/// "94.21 ± 0.30 (12.6/42.9/71.7), size 5.01, n=4"; "pending" where there is no run yet; nothing where the table has no
/// such cell. ± is half of the 95 % interval.
std::string our_text(const TablePart& part, const TableCell& cell);

/// As it is printed; nothing where there is none.
std::string printed_text(const TableCell& cell);

/// "-0.03"; with a star where the printed value lies outside our interval. Nothing where there is none.
std::string difference_text(const TablePart& part, const TableCell& cell);

/// "+1.20 ± 0.43": by seed, against the column that the table compares with. Nothing where there is none.
std::string against_text(const TablePart& part, const TableCell& cell);

/// "Table 4: Top-5 accuracy", or the title alone.
std::string part_title(const FilledPart& part);

/// The sentences that go below a part: what is selected and tested, notes on cells.
std::vector<std::string> part_notes(const FilledTable& filled, const FilledPart& part);

/// The sentences that go above all parts and below them: what it is of, the preset, the number of runs; what ± and *
/// mean.
std::vector<std::string> heading(const FilledTable& filled);
std::vector<std::string> legend(const FilledTable& filled);

}  // namespace settrain
