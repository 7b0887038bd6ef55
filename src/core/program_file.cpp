#include "src/core/program_file.h"

#include <string>

namespace settrain {

std::filesystem::path program_file() {
  std::error_code ignored;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  const std::string removed = " (deleted)";  // as the system says it
  if (path.ends_with(removed)) path.resize(path.size() - removed.size());
  return path;
}

}  // namespace settrain
