// Larger margins for rarer classes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace settrain {

/// [classes] margins m_j = max_margin * (n_min / n_j)^(1/4), with n_j = class_counts[j] training images and n_min the
/// smallest positive count: n_j^(-1/4) scaled so that the largest margin is `max_margin` (Garcin et al., ICML 2022,
/// below eq. 13; Cao et al., NeurIPS 2019). A class without an image takes the largest margin. Throws DataError at a
/// negative count.
std::vector<double> class_margins(std::span<const int64_t> class_counts, double max_margin);

}  // namespace settrain
