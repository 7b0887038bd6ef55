// Metrics against golden files.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <vector>

#include "src/measure/check/check_report.h"

namespace settrain {

/// Computes every case of every file in float64 on `device`, the validation split setting the thresholds, and compares
/// all that the file expects: counts exactly, fractions within 1e-12, thresholds within 1e-15. A row a case and kind.
/// Throws DataError naming the file and the place in it where a file is missing or malformed.
std::vector<CheckRow> check_metrics(at::Device device, const std::vector<std::filesystem::path>& files);

}  // namespace settrain
