// One writer a folder.
#pragma once

#include <filesystem>
#include <string>

#include "src/core/descriptor.h"

namespace settrain {

/// Holds an exclusive lock on `file` (made where it is missing, and left behind) for as long as the object lives; the
/// system releases it when the process dies, however it dies. The file holds the owner's process id and host.
///
/// Throws RunError naming the holder's process id and host where another process, or another lock of this one, holds
/// it.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);

  /// For a program that is to hold the lock too, until it ends: see child_process.h.
  int descriptor() const { return file_.get(); }

 private:
  Descriptor file_;
};

/// The name of this machine.
std::string host_name();

}  // namespace settrain
