// Where the files that come with the program are.
#pragma once

#include <filesystem>
#include <string>

namespace settrain {

/// `name` as a path; or below the configs/ that come with the program, with or without its ".yaml". Throws ConfigError
/// that says where it looked and what the nearest one is called.
std::filesystem::path find_config(const std::string& name);

/// configs/ and tests/golden/: beside the program in an installation, else the source tree's.
std::filesystem::path config_folder();
std::filesystem::path golden_folder();

}  // namespace settrain
