// Numbers in short.
#pragma once

#include <vector>

namespace settrain {

/// All 0 where there is no number.
struct Summary {
  double min = 0, median = 0, mean = 0, max = 0;
};

/// The median of an even number of values is the mean of the middle two.
Summary summarise(std::vector<double> values);

}  // namespace settrain
