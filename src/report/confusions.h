// Which classes are taken for which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace settrain {

struct Confusion {
  int64_t truth = 0, predicted = 0;
  int64_t count = 0;  // images of class `truth` whose best class is `predicted`

  bool operator==(const Confusion&) const = default;
};

/// The pairs of different classes that are confused most, at most `limit`: by falling count, then by class. `labels`
/// and `predicted` are of the same images.
std::vector<Confusion> most_confused(const std::vector<int64_t>& labels, const std::vector<int64_t>& predicted,
                                     size_t limit);

/// The superclass of each of `classes`. `superclass_of` [classes].
std::vector<int64_t> to_superclasses(std::vector<int64_t> classes, const std::vector<int64_t>& superclass_of);

}  // namespace settrain
