// A folder for files of the moment.
#pragma once

#include <filesystem>

namespace settrain {

/// A new folder in the system's folder of temporary files, which goes away with its contents. Throws RunError where it
/// cannot be made.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace settrain
