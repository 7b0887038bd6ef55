// Reading the files of a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "src/core/error.h"

namespace settrain {

/// A DataError for the current errno: "cannot open 'FILE': No such file or directory". `action`: "open".
DataError data_file_error(std::string_view action, const std::filesystem::path& file);

/// Reads the file into the front of `memory`, which grows where it is too small and can be reused for the next file.
/// Returns the part of `memory` that holds the file. Throws DataError where the file cannot be read.
std::span<const uint8_t> read_file_bytes(const std::filesystem::path& file, std::vector<uint8_t>& memory);

}  // namespace settrain
