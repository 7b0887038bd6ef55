#include "src/core/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "src/core/files.h"

namespace settrain {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "settrain-XXXXXX").string();
  if (!mkdtemp(name.data())) throw file_error("make", name, errno);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace settrain
