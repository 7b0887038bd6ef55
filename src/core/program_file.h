// Where the program itself lies.
#pragma once

#include <filesystem>

namespace settrain {

/// The path of this process' program; where its file was replaced or removed meanwhile, the path that it had.
std::filesystem::path program_file();

}  // namespace settrain
