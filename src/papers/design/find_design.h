// Designs' files by name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace settrain {

/// Whether one name comes before the other in a list: "thesis/4.9" before "thesis/4.10".
bool comes_before(const std::string& a, const std::string& b);

/// The names of all designs below a folder, "icml2022/4", sorted; numbers as numbers.
std::vector<std::string> design_names(const std::filesystem::path& folder);

/// The file of a table or a figure (`what`) by its name, by a path, or by the name of another printed one that comes
/// from the same runs ("icml2022/6"); `numbers` gives those of a file. Throws ConfigError with the nearest name.
std::filesystem::path find_design(const std::filesystem::path& folder, const std::string& name, const std::string& what,
                                  const std::function<std::vector<std::string>(const std::filesystem::path&)>& numbers);

}  // namespace settrain
