// Files that a subcommand writes where the user says.
#pragma once

#include <filesystem>

namespace settrain {

/// Throws Error where something is in that place that may not be overwritten: a file without `overwrite`, a checkpoint
/// of a run, which would be lost, or no regular file.
void refuse_existing(const std::filesystem::path& file, bool overwrite);

}  // namespace settrain
