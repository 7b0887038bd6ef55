// Files that a subcommand writes where the user says.
#pragma once

#include <filesystem>

namespace settrain {

/// Throws Error where something is in that place and may not be overwritten, or is no regular file.
void refuse_existing(const std::filesystem::path& file, bool overwrite);

}  // namespace settrain
