// How a model's weights start, against recorded distributions.
#pragma once

#include <filesystem>

#include "src/measure/check/check_report.h"
#include "src/measure/check/golden_model.h"

namespace settrain {

/// Every parameter that the file (NAME.init.json) lists: constants exactly; of the others mean and standard deviation,
/// in standard errors, and whether normal and uniform values are such. The error is the largest number of standard
/// errors. Throws DataError naming the file where it is malformed.
CheckRow check_initial_weights(const std::filesystem::path& file, const std::string& name, const Model& model);

}  // namespace settrain
