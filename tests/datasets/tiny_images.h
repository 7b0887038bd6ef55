// A folder of tiny images.
#pragma once

#include <string>

#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// Files that are found and measured as images are; nothing decodes them.
struct TinyImages {
  TemporaryFolder folder;

  void add(const std::string& name) { folder.write(name, std::string("not decoded")); }
  std::string root() const { return folder.path().string(); }
};

}  // namespace settrain::test
