// Folders of classes with empty image files, for tests where only names matter.
#pragma once

#include <string>

#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// Writes `count` images to the folder `name` of `folder`.
inline void add_class(const TemporaryFolder& folder, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) folder.write(name + "/" + std::to_string(i) + ".jpg", {});
}

}  // namespace settrain::test
