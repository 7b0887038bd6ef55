// Text files that say something of every class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// Reads lines `class,text`, such as superclasses or names for people: [classes] the texts, in the order of `classes`.
/// The text may hold commas; blanks at the ends are left out, and so are empty lines. Throws DataError naming file and
/// line for a line without a comma, with an empty text, of an unknown class or of one that was there before, and for a
/// class without a line.
std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes);

}  // namespace settrain
