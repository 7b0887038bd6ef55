// Superclasses and names of classes from text files: keys of the section `data` that every data set has.
#pragma once

#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/config/key.h"

namespace settrain {

struct ClassOptions {
  std::string superclasses, class_names;  // files, see class_table.h; empty: the data set's own

  static config::Keys keys();
};

/// Gives the data set the superclasses and the names of these files, in the place of its own. Both files call a class
/// by its key or by the data set's own name, see Dataset. Superclasses are numbered in the order of the classes. Throws
/// DataError naming file and line where a file does not fit the classes.
void apply_class_options(const ClassOptions& options, Dataset& dataset);

/// Sets the superclasses of all classes by their names, [classes].
void set_superclasses(const std::vector<std::string>& superclass_by_class, Dataset& dataset);

}  // namespace settrain
