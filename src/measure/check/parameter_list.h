// A model's state_dict against a recorded list of its entries.
#pragma once

#include <filesystem>

#include "src/measure/check/check_report.h"
#include "src/measure/check/golden_model.h"

namespace settrain {

/// The model that a list NAME.params.txt is about: by the NAME.json beside it, or by its first line, "# NAME, 1000
/// classes:
/// ...". Throws DataError that names the file where it is missing or has no such line.
GoldenModel listed_model(const std::filesystem::path& file);

/// Every entry's place, dtype, shape, name and kind (parameter or buffer). The error is the number of lines that
/// differ; the note has the first.
CheckRow check_parameter_list(const std::filesystem::path& file, const std::string& name, const Model& model);

}  // namespace settrain
