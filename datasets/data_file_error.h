// What is thrown where the system refuses a file of a data set.
#pragma once

#include <cerrno>

#include "src/core/descriptor.h"

namespace settrain {

/// file_error() of the present errno, as a DataError.
inline DataError data_file_error(std::string_view action, const std::filesystem::path& file) {
  return DataError(file_error(action, file, errno).what());
}

}  // namespace settrain
