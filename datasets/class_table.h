// Text files with a line for every class.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/taxonomy.h"

namespace settrain {

/// The text without blanks, tabs and carriage returns at its ends.
std::string trimmed(std::string_view text);

/// Reads lines `class,text`, such as superclasses or display names. Returns [classes] the texts, in the order of
/// `classes`. The file calls a class by its name, by its key, or by its `earlier` name (the last two may be empty). A
/// text that is several of these stands for the class that has it as a name, else as a key; a warning tells of a name
/// that is another class' key. The text may contain commas; either may be quoted, as in CSV. Blanks at ends and empty
/// lines are ignored, and so is a first line that begins with no class, a header. Throws DataError naming file and line
/// for a line without a comma, with an empty text, with an unknown class, with a name of several classes that is no
/// key, or with a class that has a line above; and for a class without a line.
std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                          const std::vector<std::string>& keys = {},
                                          const std::vector<std::string>& earlier = {});

/// Some classes, each with a number.
struct ListedClasses {
  std::vector<double> weights;         // [classes] 0 where the class is not listed
  std::vector<std::string> unknown{};  // the names that are no class, in the file's order
};

/// Reads lines `class`, each of weight 1, or `class,weight` with weights of at least 0 where `with_weights`; a first
/// line whose weight is no number is a header. Classes are named as in read_class_table(), and need no line. Throws
/// DataError naming file and line for what is no weight, for a class that has a line above, and for a name of several
/// classes.
ListedClasses read_listed_classes(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                  const std::vector<std::string>& keys, bool with_weights);

/// Reads a taxonomy from lines `class,genus,family`: behind each class what it belongs to, from the rank above its own
/// upward; nothing between two commas where there is nothing of that rank. A first line that begins with no class names
/// the ranks, its own included: `species,genus,family`. Throws DataError as read_class_table() does, and for a line
/// with more or fewer ranks than the first.
Taxonomy read_taxonomy(const std::filesystem::path& file, const std::vector<std::string>& classes,
                       const std::vector<std::string>& keys = {}, const std::vector<std::string>& earlier = {});

}  // namespace settrain
