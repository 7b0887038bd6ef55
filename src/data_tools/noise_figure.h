// The noise matrix as a picture.
#pragma once

#include <cstdint>

#include "src/data_tools/stats.h"
#include "src/plot/pictures.h"

namespace settrain {

/// Whether it can be drawn: there is noise, and from 2 to 2000 classes, each a pixel or more.
bool has_noise_figure(const DataStats& stats);

/// `noise_matrix`: of every true class, the share of its training images that are trained on as each class, on a
/// logarithmic scale. Classes are ordered by superclass, where there are any.
Picture noise_figure(const DataStats& stats);

}  // namespace settrain
