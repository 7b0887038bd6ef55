// What a file's content is told by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "datasets/download.h"

namespace settrain {

/// "MD5 03b5dce0..."; "none" where it is not known.
std::string checksum_text(const Checksum& checksum);

/// The MD5 that a user gave. Throws ConfigError unless it is 32 hexadecimal digits.
Checksum parse_md5(const std::string& text);

/// That of a file, of the same kind as `like`. `progress` is called with the number of bytes read so far, about every
/// 4 MiB, and may throw. Throws DataError where the file cannot be read.
Checksum checksum_of_file(const std::filesystem::path& file, const Checksum& like,
                          const std::function<void(uint64_t)>& progress);

}  // namespace settrain
