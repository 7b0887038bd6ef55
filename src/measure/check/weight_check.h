// Files of weights against what their writers say of them.
#pragma once

#include <filesystem>
#include <vector>

#include "src/measure/check/check_report.h"

namespace settrain {

/// For every golden file: reads the files of weights that it lists, beside it, and compares each tensor's path, type,
/// shape, strides, offset and values, and all other values; what it lists as hostile must be refused. Where it has
/// logits of its model, these too: a convolution, batch normalisation, ReLU, the mean over the image, and a linear
/// layer. Throws DataError naming the golden file where it is missing or malformed.
std::vector<CheckRow> check_weights(const std::vector<std::filesystem::path>& files);

}  // namespace settrain
