// A config file and what it extends.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "src/config/declarations.h"
#include "src/config/layer.h"
#include "src/config/problems.h"

namespace settrain::config {

/// The layers of `file` and of its chain of `extends`, the last base first. Adds a problem and returns nullopt where a
/// file is missing, larger than 1 MiB, no YAML map, or extends itself: without all of them the rest cannot be judged.
/// `stem` is what `${file}` stands for.
std::optional<std::vector<Layer>> read_files(const std::filesystem::path& file, const std::string& stem,
                                             const Declarations& declarations, Problems& problems);

}  // namespace settrain::config
