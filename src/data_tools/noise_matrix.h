// Which classes label noise confuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace settrain {

/// `count` [1 or more] training samples of class `truth` are trained on as class `given`.
struct NoiseCell {
  int64_t truth = 0, given = 0, count = 0;

  bool operator==(const NoiseCell&) const = default;
};

/// The cells that are not 0, the diagonal (unchanged labels) among them, by truth and then given. `clean`, `trained`:
/// [samples] class indices. Throws std::invalid_argument where their numbers differ.
std::vector<NoiseCell> noise_matrix(const std::vector<int64_t>& clean, const std::vector<int64_t>& trained);

/// The cells off the diagonal with the largest counts, `most` of them at most; equal ones in the order of `cells`.
std::vector<NoiseCell> largest_confusions(std::vector<NoiseCell> cells, size_t most);

}  // namespace settrain
