// Which label becomes which: a matrix of probabilities from a text file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace settrain {

/// Reads `num_classes` lines of as many numbers with blanks or commas between them; line y holds P(new label | label
/// y). Empty lines, and what follows a #, are left out. Returns [num_classes, num_classes] row-major. Throws DataError
/// naming file and line for another count of numbers, for what is no number, is negative, or is not finite, and for a
/// line whose numbers add up to something else than 1 within 1e-6; naming the file for another count of lines.
std::vector<double> read_confusion_matrix(const std::filesystem::path& file, int64_t num_classes);

}  // namespace settrain
