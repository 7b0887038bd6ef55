// The data sets of the program, for tests.
#pragma once

#include "datasets/registry.h"

namespace settrain::test {

inline const DatasetRegistry& builtin_datasets() {
  static const DatasetRegistry registry = [] {
    DatasetRegistry datasets("data set");
    register_builtin_datasets(datasets);
    return datasets;
  }();
  return registry;
}

}  // namespace settrain::test
