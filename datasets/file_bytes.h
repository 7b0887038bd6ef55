// All bytes of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace settrain {

/// Reads the file into the front of `memory`, which grows where it is too small and is kept for the next file; returns
/// the part that holds it. Throws DataError where the file cannot be read.
std::span<const uint8_t> read_file_bytes(const std::filesystem::path& file, std::vector<uint8_t>& memory);

}  // namespace settrain
