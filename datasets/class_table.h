// Text files that say something of every class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// Reads lines `class,text`, such as superclasses or names for people: [classes] the texts, in the order of `classes`.
/// A class is called by its name or, where `keys` are not empty, by its key. The text may hold commas; blanks at the
/// ends are left out, and so are empty lines. Throws DataError naming file and line for a line without a comma, with an
/// empty text, of an unknown class, of a name that several classes have, or of a class that was there before; and for a
/// class without a line.
std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                          const std::vector<std::string>& keys = {});

}  // namespace settrain
