// Which images of a split a report shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace settrain {

/// Samples of a split, by their place in it.
struct ChosenExamples {
  std::vector<int64_t> correct;  // whose set holds the label
  std::vector<int64_t> missed;   // whose set does not
  std::vector<int64_t> large;    // with the largest sets, where not all have the same size
};

/// At most `each` of every kind, none drawn: the right and the missed ones are spread evenly over the split, the large
/// ones go by falling size, then by place. `sizes` [samples] classes in every set, `hits` [samples] whether it holds
/// the label.
ChosenExamples choose_examples(const std::vector<int64_t>& sizes, const std::vector<bool>& hits, size_t each);

}  // namespace settrain
