// Text files with a line for every class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// Reads lines `class,text`, such as superclasses or display names. Returns [classes] the texts, in the order of
/// `classes`. The file names a class by its name or, where `keys` are not empty, by its key. The text may contain
/// commas; blanks at its ends and empty lines are ignored. Throws DataError naming file and line for a line without a
/// comma, with an empty text, with an unknown class, with a name of several classes, or with a class that has a line
/// above; and for a class without a line.
std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                          const std::vector<std::string>& keys = {});

}  // namespace settrain
